//! The seven events of the workflow document, made from the messages of streams.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use windlass_kernel::ExecutionId;
use windlass_views::{Message, MessageBody, execution_id, time};

// The names are token trees, because the derived schema does not see a literal through a macro.
macro_rules! events {
    ($($event:ident = $name:tt,)+) => {
        /// An event that a receiver can subscribe to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
        pub(crate) enum WebhookEvent {
            $(#[serde(rename = $name)] $event,)+
        }

        impl WebhookEvent {
            #[must_use]
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(WebhookEvent::$event => $name,)+
                }
            }
        }
    };
}

events! {
    ExecutionStarted = "execution.started",
    ExecutionCompleted = "execution.completed",
    ExecutionFailed = "execution.failed",
    ExecutionCancelled = "execution.cancelled",
    NodeStarted = "node.started",
    NodeCompleted = "node.completed",
    NodeFailed = "node.failed",
}

use WebhookEvent::{
    ExecutionCancelled, ExecutionCompleted, ExecutionFailed, ExecutionStarted, NodeCompleted, NodeFailed,
    NodeStarted,
};

/// Events for a receiver that names none: those of the execution, not those of its nodes.
const USUAL: [WebhookEvent; 4] = [ExecutionStarted, ExecutionCompleted, ExecutionFailed, ExecutionCancelled];

/// The subject of an event.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub execution: ExecutionId,
    /// Id of the workflow in the API.
    pub workflow: Option<String>,
}

/// Returns the events that a start subscribes to. `complete` and `error` add an event, or remove it from the default ones.
#[must_use]
pub(crate) fn wanted(
    listed: Option<&[WebhookEvent]>,
    complete: Option<bool>,
    error: Option<bool>,
) -> Vec<WebhookEvent> {
    let mut events = listed.unwrap_or(&USUAL).to_vec();
    for (event, asked) in [(ExecutionCompleted, complete), (ExecutionFailed, error)] {
        match asked {
            Some(true) if !events.contains(&event) => events.push(event),
            Some(false) if listed.is_none() => events.retain(|listed| *listed != event),
            _ => {}
        }
    }
    events
}

/// Returns the event of a message, if any. A node has failed when no attempt follows, and starts once.
#[must_use]
pub(crate) fn event(body: &MessageBody) -> Option<WebhookEvent> {
    match body {
        MessageBody::Status { began: true, .. } => Some(ExecutionStarted),
        MessageBody::Ended { status: "failed", .. } => Some(ExecutionFailed),
        MessageBody::Ended { status: "cancelled", .. } => Some(ExecutionCancelled),
        // A partial success counts as completed; the data has the status.
        MessageBody::Ended { .. } => Some(ExecutionCompleted),
        MessageBody::NodeStarted { attempt: 1, .. } => Some(NodeStarted),
        MessageBody::NodeCompleted { .. } => Some(NodeCompleted),
        MessageBody::NodeFailed { last: true, .. } => Some(NodeFailed),
        MessageBody::Status { .. }
        | MessageBody::NodeStarted { .. }
        | MessageBody::NodeFailed { .. }
        | MessageBody::Log { .. } => None,
    }
}

/// Returns the body of a request, without its signature. `number` is the number of the event in its execution, from 1 and
/// without gaps.
#[must_use]
pub(crate) fn body(event: WebhookEvent, number: u64, subject: &Subject, message: &Message) -> Value {
    let mut data = Map::new();
    data.insert("executionId".into(), json!(execution_id(subject.execution)));
    data.insert("workflowId".into(), json!(subject.workflow));
    describe(&message.body, message, &mut data);
    data.insert("sequence".into(), json!(number));
    json!({ "event": event.name(), "timestamp": time(message.at), "data": data })
}

fn describe(body: &MessageBody, message: &Message, data: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
    match body {
        MessageBody::Status { status, .. } => put("status", json!(status)),
        MessageBody::Ended { status, duration_ms, outputs, .. } => {
            put("status", json!(status));
            put("duration", json!(duration_ms));
            put("outputs", outputs.clone());
            if let Some(error) = body.error(message.at) {
                put("error", error);
            }
        }
        MessageBody::NodeStarted { node, .. } => {
            put("status", json!("running"));
            put("nodeId", json!(node.id));
            put("nodeName", json!(node.name));
            put("nodeType", json!(node.kind));
        }
        MessageBody::NodeCompleted { node, duration_ms, output } => {
            put("status", json!("completed"));
            put("duration", json!(duration_ms));
            put("nodeId", json!(node.id));
            put("nodeName", json!(node.name));
            put("nodeType", json!(node.kind));
            put("output", json!(output));
        }
        MessageBody::NodeFailed { node, .. } => {
            put("status", json!("failed"));
            put("nodeId", json!(node.id));
            put("nodeName", json!(node.name));
            put("nodeType", json!(node.kind));
            put("error", json!(body.error(message.at)));
        }
        MessageBody::Log { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::Millis;
    use windlass_views::ErrorPlace;

    fn names(listed: Option<&[WebhookEvent]>, complete: Option<bool>, error: Option<bool>) -> String {
        let events: Vec<&str> = wanted(listed, complete, error).iter().map(|event| event.name()).collect();
        events.join(" ")
    }

    #[test]
    fn wfl_16_the_usual_events_are_those_of_the_execution_and_two_options_add_theirs() {
        let usual = "execution.started execution.completed execution.failed execution.cancelled";
        assert_eq!(names(None, None, None), usual);
        assert_eq!(names(None, Some(true), Some(true)), usual);
        assert_eq!(names(None, Some(false), None), "execution.started execution.failed execution.cancelled");
        assert_eq!(
            names(Some(&[NodeFailed]), Some(true), Some(true)),
            "node.failed execution.completed execution.failed"
        );
        assert_eq!(names(Some(&[ExecutionCompleted]), Some(false), None), "execution.completed");
    }

    fn ended(status: &'static str) -> MessageBody {
        MessageBody::Ended {
            status,
            duration_ms: 60_000,
            outputs: json!({ "result": 1 }),
            node: None,
            failure: None,
            place: ErrorPlace::default(),
        }
    }

    #[test]
    fn wfl_16_wfl_36_the_end_is_an_event_by_its_status() {
        let events: Vec<_> = ["completed", "partial_success", "failed", "cancelled"]
            .map(|status| event(&ended(status)))
            .into();
        let expected = [ExecutionCompleted, ExecutionCompleted, ExecutionFailed, ExecutionCancelled];
        assert_eq!(events, expected.map(Some));
    }

    #[test]
    fn wfl_16_a_body_has_the_fields_of_the_document() {
        let subject = Subject { execution: ExecutionId(7), workflow: Some("wf_1".into()) };
        let message =
            Message { sequence: 9, newer_than: 8, at: Millis(1_000), body: ended("partial_success") };
        let sent = body(ExecutionCompleted, 3, &subject, &message);
        let expected = json!({
            "event": "execution.completed", "timestamp": "1970-01-01T00:00:01.000Z",
            "data": { "executionId": "exec_00000000000000000000000000000007", "workflowId": "wf_1",
                "status": "partial_success", "duration": 60_000, "outputs": { "result": 1 }, "sequence": 3 },
        });
        assert_eq!(sent, expected);
    }
}
