//! One attempt to deliver an event, and the schedule of retries.

use super::signature::{Secret, of_body, of_message};
use crate::outbound::OutboundClient;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use std::time::Duration;
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{DeliveryAttempt, DeliveryState, NewDelivery};
use windlass_views::canonical;

/// Maximum time for the response of a receiver, which should enqueue the event and respond.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Maximum length of a stored error, in characters.
const ERROR_MAX: usize = 500;

/// Returns the id of a delivery, the same for every attempt, so that a receiver detects duplicates.
#[must_use]
pub(crate) fn message_id(execution: ExecutionId, number: u64) -> String {
    format!("msg_{execution}_{number}")
}

/// Parses an id of [`message_id`] into execution and number.
#[must_use]
pub(crate) fn of_message_id(text: &str) -> Option<(ExecutionId, u64)> {
    let (execution, number) = text.strip_prefix("msg_")?.split_once('_')?;
    Some((ExecutionId::try_from(execution.to_owned()).ok()?, number.parse().ok()?))
}

/// The response of a receiver, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryResponse {
    Taken(u16),
    /// The receiver wants no further events (410).
    Gone,
    Refused {
        status: u16,
        retry_after_ms: Option<u64>,
    },
    Failed(String),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryRequest<'a> {
    pub url: &'a str,
    pub execution: ExecutionId,
    pub delivery: &'a NewDelivery,
}

impl DeliveryRequest<'_> {
    /// Sends the request once. Redirects are not followed.
    pub(crate) async fn send(
        self,
        client: &OutboundClient,
        secrets: &[Secret],
        now: Millis,
    ) -> DeliveryResponse {
        match self.post(client, secrets, now).await {
            Ok(response) => answered(&response),
            Err(error) => DeliveryResponse::Failed(error),
        }
    }

    async fn post(
        self,
        client: &OutboundClient,
        secrets: &[Secret],
        now: Millis,
    ) -> Result<Response, String> {
        let request = client.request(Method::POST, self.url)?;
        let (newest, body) = (secrets.first().ok_or("there is no webhook secret")?, &self.delivery.body);
        let mut signed: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        signed["signature"] = Value::from(of_body(newest, &signed));
        let body = canonical(&signed);
        let (id, seconds) = (message_id(self.execution, self.delivery.number), now.0 / 1_000);
        let request = request
            .timeout(ANSWER_MAX)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", of_message(secrets, &id, seconds, &body))
            .body(body);
        request.send().await.map_err(|error| causes(&error))
    }
}

fn answered(response: &Response) -> DeliveryResponse {
    let status = response.status();
    if status.is_success() {
        return DeliveryResponse::Taken(status.as_u16());
    }
    if status == StatusCode::GONE {
        return DeliveryResponse::Gone;
    }
    let said = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let retry_after_ms = said.map(|seconds| seconds.saturating_mul(1_000).min(RETRY_AFTER_MAX_MS));
    DeliveryResponse::Refused { status: status.as_u16(), retry_after_ms }
}

/// Formats an error with its causes, without the URL, which is known.
fn causes(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    if error.is_timeout() {
        causes.insert(0, format!("no response within {} s", ANSWER_MAX.as_secs()));
    }
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}

/// Returns the row of a delivery after an attempt.
#[must_use]
pub(crate) fn outcome(
    execution: ExecutionId,
    number: u64,
    tried_before: u32,
    answered: &DeliveryResponse,
    (at, random): (Millis, u32),
) -> DeliveryAttempt {
    let attempts = tried_before.saturating_add(1);
    let mut row = DeliveryAttempt {
        execution,
        number,
        state: DeliveryState::Pending,
        attempts,
        due: None,
        answer: None,
        error: None,
        at,
    };
    let mut said_ms = 0;
    match answered {
        DeliveryResponse::Taken(status) => {
            (row.state, row.answer) = (DeliveryState::Delivered, Some(*status));
            return row;
        }
        DeliveryResponse::Gone => {
            (row.state, row.answer) = (DeliveryState::GivenUp, Some(410));
            row.error = Some("the receiver wants no further events (410)".to_owned());
            return row;
        }
        DeliveryResponse::Refused { status, retry_after_ms } => {
            said_ms = retry_after_ms.unwrap_or(0);
            row.answer = Some(*status);
            row.error = Some(format!("the receiver responded with status {status}"));
        }
        DeliveryResponse::Failed(error) => row.error = Some(error.chars().take(ERROR_MAX).collect()),
    }
    match delay_ms(attempts, random) {
        Some(delay_ms) => row.due = Some(at.plus(delay_ms.max(said_ms))),
        None => row.state = DeliveryState::GivenUp,
    }
    row
}

/// Seconds before each retry. The first ones cover a redeployment of the receiver, the last ones a failure over a weekend.
const DELAYS_S: [u64; 12] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 57_600, 86_400];
/// Share of a delay that is randomised, so that a receiver that is back does not get everything at once.
const JITTER: f64 = 0.1;
/// The longest `Retry-After` that is respected.
const RETRY_AFTER_MAX_MS: u64 = 86_400_000;

/// Returns the delay after a number of failed tries, from 1; None when the delivery is given up. `random` is uniform.
fn delay_ms(failed: u32, random: u32) -> Option<u64> {
    let index = usize::try_from(failed.checked_sub(1)?).ok()?;
    let base = *DELAYS_S.get(index)? * 1_000;
    let chance = f64::from(random) / f64::from(u32::MAX) * 2.0 - 1.0;
    let jitter = base as f64 * JITTER * chance;
    Some((base as f64 + jitter).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ExecutionId = ExecutionId(0xab);

    fn after(tried_before: u32, answered: &DeliveryResponse) -> DeliveryAttempt {
        outcome(ID, 3, tried_before, answered, (Millis(1_000), u32::MAX / 2))
    }

    #[test]
    fn an_id_is_the_same_for_every_try_and_names_its_delivery() {
        let id = message_id(ID, 12);
        assert_eq!(id, "msg_000000000000000000000000000000ab_12");
        assert_eq!(of_message_id(&id), Some((ID, 12)));
        for text in [
            "",
            "msg_",
            "msg_ab_1",
            "000000000000000000000000000000ab_1",
            "msg_000000000000000000000000000000ab_x",
        ] {
            assert_eq!(of_message_id(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_taken_is_delivered_and_what_was_not_is_tried_again_later() {
        let taken = after(4, &DeliveryResponse::Taken(204));
        assert_eq!(
            (taken.state, taken.attempts, taken.answer, taken.due),
            (DeliveryState::Delivered, 5, Some(204), None)
        );
        let failed = after(0, &DeliveryResponse::Failed("connection refused".into()));
        assert_eq!((failed.state, failed.due), (DeliveryState::Pending, Some(Millis(6_000))));
        assert_eq!(failed.error.as_deref(), Some("connection refused"));
        let refused = after(1, &DeliveryResponse::Refused { status: 503, retry_after_ms: None });
        assert_eq!((refused.answer, refused.due), (Some(503), Some(Millis(31_000))));
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_less() {
        let said = |ms| after(0, &DeliveryResponse::Refused { status: 429, retry_after_ms: Some(ms) }).due;
        assert_eq!((said(60_000), said(1)), (Some(Millis(61_000)), Some(Millis(6_000))));
    }

    #[test]
    fn a_delivery_is_given_up_after_the_last_delay_or_at_once_if_the_receiver_wants_none() {
        let last = after(12, &DeliveryResponse::Failed("no".into()));
        assert_eq!((last.state, last.due), (DeliveryState::GivenUp, None));
        assert_eq!(after(0, &DeliveryResponse::Gone).state, DeliveryState::GivenUp);
    }

    #[test]
    fn tries_are_repeated_for_three_days_and_then_end() {
        let delays: Vec<u64> = (1..).map_while(|failed| delay_ms(failed, u32::MAX / 2)).collect();
        assert_eq!(delays.len(), DELAYS_S.len());
        assert!(delays.is_sorted());
        let hours = delays.iter().sum::<u64>() / 3_600_000;
        assert!((60..=84).contains(&hours), "{hours} hours");
        assert_eq!(delay_ms(13, 0), None);
    }

    #[test]
    fn chance_moves_a_delay_by_a_tenth_at_most() {
        assert_eq!((delay_ms(1, 0), delay_ms(1, u32::MAX)), (Some(4_500), Some(5_500)));
        assert_eq!(delay_ms(0, 0), None);
    }
}
