//! Options of a start, and their validation.

use crate::ids;
use crate::problem::Problem;
use crate::routes::shared;
use crate::webhooks::event::{self, WebhookEvent};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use windlass_dialects::{Overrides, RetryPolicy, failure_mode, retry_schema};
use windlass_engine::Start;
use windlass_kernel::StartWhen;
use windlass_store::{Options, Origin, Priority, Runner, Webhook};
use windlass_worker::egress::Egress;

/// Maximum length of the columns that other stores have for them.
const CORRELATION_MAX: usize = 100;
const TAGS_MAX: usize = 100;
const TAG_MAX: usize = 200;
const URL_MAX: usize = 2_048;
/// Maximum timeout: one year.
const TIMEOUT_MAX_MS: u64 = 365 * 24 * 60 * 60 * 1_000;

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExecuteRequest {
    #[serde(default)]
    #[schema(value_type = Object)]
    pub inputs: Map<String, Value>,
    pub options: Option<ExecutionOptions>,
}

#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExecutionOptions {
    /// Timeout in milliseconds, from the start; time in the queue and while paused does not count.
    #[schema(minimum = 1)]
    timeout: Option<u64>,
    /// Time until which it stays queued.
    #[schema(format = DateTime)]
    scheduled_at: Option<String>,
    priority: Option<Urgency>,
    /// Retry policy of nodes that have none of their own; for workflows only.
    #[schema(value_type = Option<RetryPolicyShape>)]
    retry_policy: Option<RetryPolicy>,
    /// Failure mode; for workflows only.
    #[schema(value_type = Option<FailureModeName>)]
    failure_mode: Option<String>,
    #[schema(max_length = 2048)]
    webhook_url: Option<String>,
    webhook_events: Option<Vec<WebhookEvent>>,
    notify_on_complete: Option<bool>,
    notify_on_error: Option<bool>,
    /// If false, the response is sent when the execution has ended or waits for a person.
    #[serde(rename = "async")]
    pub is_async: Option<bool>,
    pub dry_run: Option<bool>,
    debug_mode: Option<bool>,
    tags: Option<Vec<String>>,
    #[schema(max_length = 100)]
    correlation_id: Option<String>,
    parent_execution_id: Option<String>,
    /// Workers outside of the server that run the steps; default: the workers of the server
    runner: Option<RunnerOption>,
}

/// A group of `windlass worker` processes.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = RunnerOptions)]
#[serde(deny_unknown_fields)]
struct RunnerOption {
    #[schema(min_length = 1, max_length = 64)]
    group: String,
    /// Cluster of the workers; default: any
    #[schema(min_length = 1, max_length = 64)]
    cluster: Option<String>,
}

/// The document's RetryPolicy, as definitions have it.
struct RetryPolicyShape;

impl PartialSchema for RetryPolicyShape {
    fn schema() -> RefOr<Schema> {
        RefOr::T(
            serde_json::from_value(retry_schema()).expect("a part of the dialect's JSON Schema is a schema"),
        )
    }
}

impl ToSchema for RetryPolicyShape {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("RetryPolicy")
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = FailureMode)]
#[serde(rename_all = "snake_case")]
enum FailureModeName {
    FailFast,
    ContinueOnError,
    CollectErrors,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Urgency {
    Low,
    Normal,
    High,
    Critical,
}

impl ExecutionOptions {
    /// Returns the start that these options describe, without its definition, and the settings that it replaces. The first
    /// option that cannot be used is reported.
    pub(crate) fn start(&self, origin: Origin, egress: &Egress) -> Result<(Start, Overrides), Problem> {
        let when = match &self.scheduled_at {
            Some(text) => StartWhen::At(shared::parse_time("options.scheduledAt", text)?),
            None => StartWhen::Now,
        };
        let wrong = || Problem::invalid("options.parentExecutionId", "is not the id of an execution");
        let parent = self.parent_execution_id.as_deref().map(ids::execution).transpose();
        let options = Options {
            priority: self.priority(),
            tags: self.tags()?,
            correlation: self.correlation()?,
            debug: self.is_debug(),
            webhook: self.webhook(egress)?,
            runner: self.runner()?.or(origin.options.runner),
            ..origin.options
        };
        let origin = Arc::new(Origin { parent: parent.map_err(|_| wrong())?, options, ..origin });
        let (timeout_ms, overrides) = (self.timeout_ms()?, self.overrides()?);
        let (inputs, defaults) = (Value::Null, Value::Null);
        Ok((Start { origin, inputs, defaults, timeout_ms, when, net: None }, overrides))
    }

    fn runner(&self) -> Result<Option<Runner>, Problem> {
        let Some(RunnerOption { group, cluster }) = &self.runner else { return Ok(None) };
        let group = shared::check_group("options.runner.group", group)?;
        let check = |name: &String| shared::check_group("options.runner.cluster", name);
        Ok(Some(Runner { group, cluster: cluster.as_ref().map(check).transpose()? }))
    }

    pub(crate) fn is_debug(&self) -> bool {
        self.debug_mode == Some(true)
    }

    fn timeout_ms(&self) -> Result<Option<u64>, Problem> {
        match self.timeout {
            Some(ms) if !(1..=TIMEOUT_MAX_MS).contains(&ms) => {
                let message = format!("must be a whole number of milliseconds from 1 to {TIMEOUT_MAX_MS}");
                Err(Problem::invalid("options.timeout", message))
            }
            timeout => Ok(timeout),
        }
    }

    fn priority(&self) -> Priority {
        match self.priority {
            Some(Urgency::Low) => Priority::Low,
            Some(Urgency::Normal) | None => Priority::Normal,
            Some(Urgency::High) => Priority::High,
            Some(Urgency::Critical) => Priority::Critical,
        }
    }

    fn overrides(&self) -> Result<Overrides, Problem> {
        let retry = self.retry_policy.as_ref().map(RetryPolicy::retry).transpose();
        let retry = retry
            .map_err(|(field, message)| Problem::invalid(format!("options.retryPolicy.{field}"), message))?;
        let unknown = || {
            let message = "use `fail_fast`, `continue_on_error` or `collect_errors`";
            Problem::invalid("options.failureMode", message)
        };
        let mode = self.failure_mode.as_deref().map(|word| failure_mode(word).ok_or_else(unknown));
        Ok(Overrides { retry, failure_mode: mode.transpose()?, ..Overrides::default() })
    }

    fn tags(&self) -> Result<Vec<String>, Problem> {
        let mut tags = self.tags.clone().unwrap_or_default();
        if tags.len() > TAGS_MAX {
            return Err(Problem::invalid("options.tags", format!("there may be {TAGS_MAX} tags at most")));
        }
        let bad = |tag: &String| tag.is_empty() || tag.chars().count() > TAG_MAX || tag.contains('\0');
        if let Some(index) = tags.iter().position(bad) {
            let message = format!("a tag has 1 to {TAG_MAX} characters");
            return Err(Problem::invalid(format!("options.tags[{index}]"), message));
        }
        let mut seen = std::collections::BTreeSet::new();
        tags.retain(|tag| seen.insert(tag.clone()));
        Ok(tags)
    }

    fn correlation(&self) -> Result<Option<String>, Problem> {
        let bad =
            |text: &str| text.is_empty() || text.chars().count() > CORRELATION_MAX || text.contains('\0');
        match &self.correlation_id {
            Some(text) if bad(text) => {
                let message = format!("must have 1 to {CORRELATION_MAX} characters");
                Err(Problem::invalid("options.correlationId", message))
            }
            correlation => Ok(correlation.clone()),
        }
    }

    /// Checks the webhook. Its address is checked again at every delivery; one that is not permitted now is refused
    /// now.
    fn webhook(&self, egress: &Egress) -> Result<Option<Webhook>, Problem> {
        let Some(url) = &self.webhook_url else {
            let given = [
                ("webhookEvents", self.webhook_events.is_some()),
                ("notifyOnComplete", self.notify_on_complete.is_some()),
                ("notifyOnError", self.notify_on_error.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((field, _)) => {
                    Err(Problem::invalid(format!("options.{field}"), "needs options.webhookUrl"))
                }
                None => Ok(None),
            };
        };
        let url = check_webhook_url("options.webhookUrl", url, egress)?;
        let listed = self.webhook_events.as_deref();
        let events = event::wanted(listed, self.notify_on_complete, self.notify_on_error);
        let events = events.iter().map(|event| event.name().to_owned()).collect();
        Ok(Some(Webhook { url, events }))
    }
}

/// Refuses the address of a webhook that cannot receive requests. Returns it in its canonical form.
pub(crate) fn check_webhook_url(field: &str, url: &str, egress: &Egress) -> Result<String, Problem> {
    let wrong = |message: String| Problem::invalid(field, message);
    let parsed = reqwest::Url::parse(url).map_err(|error| wrong(format!("is not a URL: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") || url.len() > URL_MAX {
        return Err(wrong(format!("must be an http or https URL of at most {URL_MAX} bytes")));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(wrong("must not hold a user or a password: deliveries are signed".to_owned()));
    }
    let host = parsed.host_str().unwrap_or_default();
    egress.check_host(host).map_err(|refused| wrong(refused.to_string()))?;
    Ok(parsed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_kernel::ExecutionId;

    fn read(options: Value) -> Result<(Start, Overrides), Problem> {
        let options: ExecutionOptions =
            serde_json::from_value(options).map_err(|error| Problem::bad_request(error.to_string()))?;
        options.start(Origin::default(), &Egress::default())
    }

    #[test]
    fn a_start_without_options_has_the_defaults() {
        let (start, overrides) = read(json!({})).expect("good");
        assert_eq!((start.when, start.timeout_ms), (StartWhen::Now, None));
        assert_eq!(*start.origin, Origin::default());
        assert!(overrides.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let check = |options: Value, path: &str| {
            let problem = read(options.clone()).expect_err("it is refused");
            assert_eq!(problem.status().as_u16(), 400, "{options}");
            assert_eq!(problem.details[0].path, path, "{options}: {}", problem.message);
        };
        check(json!({ "timeout": 0 }), "options.timeout");
        check(json!({ "scheduledAt": "tomorrow" }), "options.scheduledAt");
        check(json!({ "retryPolicy": { "maxRetries": 5_000_000 } }), "options.retryPolicy.maxRetries");
        check(
            json!({ "retryPolicy": { "backoffStrategy": "never" } }),
            "options.retryPolicy.backoffStrategy",
        );
        check(json!({ "failureMode": "hope" }), "options.failureMode");
        check(json!({ "tags": ["ok", ""] }), "options.tags[1]");
        check(json!({ "correlationId": "x".repeat(101) }), "options.correlationId");
        check(json!({ "parentExecutionId": "exec_1" }), "options.parentExecutionId");
        check(json!({ "webhookUrl": "ftp://example.org" }), "options.webhookUrl");
        check(json!({ "webhookUrl": "https://me:pw@example.org" }), "options.webhookUrl");
        check(json!({ "webhookUrl": "http://169.254.169.254/" }), "options.webhookUrl");
        check(json!({ "webhookUrl": "http://127.0.0.1/" }), "options.webhookUrl");
        check(json!({ "webhookEvents": ["node.failed"] }), "options.webhookEvents");
    }

    #[test]
    fn wfl_18_labels_are_kept_and_tags_once() {
        let (start, _) = read(
            json!({ "tags": ["a", "b", "a"], "correlationId": "c", "priority": "critical", "debugMode": true,
            "parentExecutionId": "exec_00000000000000000000000000000009" }),
        )
        .expect("good");
        let Origin { options, parent, .. } = &*start.origin;
        assert_eq!(options.tags, ["a", "b"]);
        assert_eq!((options.correlation.as_deref(), options.debug), (Some("c"), true));
        assert_eq!((options.priority, *parent), (Priority::Critical, Some(ExecutionId(9))));
    }

    #[test]
    fn wfl_16_a_webhook_has_an_address_and_events() {
        let asked = read(
            json!({ "webhookUrl": "https://example.org/in", "webhookEvents": ["node.started"], "notifyOnError": true }),
        );
        let webhook = asked.expect("good").0.origin.options.webhook.clone().expect("a webhook");
        assert_eq!(
            (webhook.url.as_str(), webhook.events.join(" ").as_str()),
            ("https://example.org/in", "node.started execution.failed")
        );
    }
}
