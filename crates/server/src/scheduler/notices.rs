//! Requests about dead letters, sent to the address in their schedule: at least once, signed like other webhooks.

use super::{LOOK_EVERY, TROUBLE, store};
use crate::app::App;
use crate::host::{now, seed};
use crate::ids;
use crate::problem::Problem;
use crate::webhooks::delivery::{DeliveryRequest, outcome};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_kernel::ExecutionId;
use windlass_store::{
    DeadLetterNotice, NewDelivery, NoticeAttempt, ScheduleWrite, Schedules as _, StoredDeadLetter,
};
use windlass_views::time;

/// Requests at the same time.
const AT_ONCE: usize = 32;
pub(crate) const EVENT: &str = "schedule.dead_lettered";

/// Sends notices until the server stops. Unsent ones are in the store.
pub(super) async fn run(app: Arc<App>) {
    loop {
        let pause = send_due(&app).await.unwrap_or_else(|problem| {
            tracing::warn!(%problem, "cannot report dead letters; retrying");
            TROUBLE
        });
        tokio::select! {
            () = app.notice_bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
            () = app.stopped() => return,
        }
    }
}

/// Sends what is due. Returns the time until something is due again.
async fn send_due(app: &Arc<App>) -> Result<Duration, Problem> {
    loop {
        let at = now();
        let due = app.followers.look(move |reader| reader.due_notices(at, AT_ONCE)).await?;
        if due.is_empty() || app.is_stopping() {
            break;
        }
        let mut sending = JoinSet::new();
        for notice in due {
            let app = app.clone();
            sending.spawn(async move { send(&app, notice).await });
        }
        while let Some(sent) = sending.join_next().await {
            sent.map_err(Problem::internal)??;
        }
    }
    let at = now();
    let next = app.followers.look(move |reader| reader.next_attention(at)).await?.notice;
    Ok(next.map_or(LOOK_EVERY, |next| Duration::from_millis(next.since(at))).min(LOOK_EVERY))
}

async fn send(app: &Arc<App>, notice: DeadLetterNotice) -> Result<(), Problem> {
    let DeadLetterNotice { letter, url, attempts } = notice;
    let (state, tenant) = (app.clone(), letter.tenant.clone());
    let secrets = app.run_blocking(move || state.webhook_secrets.of(&tenant)).await??.at(now());
    // The id of the dead letter is the id of the message, the same for every attempt.
    let (execution, number) = (ExecutionId(letter.id.0), 1);
    let body = body(&letter).to_string();
    let delivery = NewDelivery { number, message: 1, event: EVENT.to_owned(), body };
    let request = DeliveryRequest { url: &url, execution, delivery: &delivery };
    let response = request.send(&app.outbound.client().await?, &secrets, now()).await;
    let random = u32::try_from(seed() & u64::from(u32::MAX)).unwrap_or_default();
    let row = outcome(execution, number, attempts, &response, (now(), random));
    let attempt =
        NoticeAttempt { letter: letter.id, attempts: row.attempts, due: row.due, error_text: row.error };
    store(app, ScheduleWrite::Notice(attempt)).await.map(drop)
}

fn body(letter: &StoredDeadLetter) -> Value {
    let data = json!({
        "id": ids::format_dead_letter(letter.id),
        "schedule_id": ids::format_schedule(letter.schedule),
        "run_id": ids::format_run(letter.run),
        "occurrence_key": letter.occurrence_key,
        "reason": letter.reason,
    });
    json!({ "event": EVENT, "timestamp": time(letter.created_at), "data": data })
}
