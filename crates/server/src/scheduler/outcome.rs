//! The result of a run, read from the view of its execution.

use serde_json::{Value, json};
use windlass_protocol::codes;
use windlass_store::{Receipt, RunOutcome, RunResult};
use windlass_views::ExecutionStatus;

/// Maximum bytes of a receipt; the log of the execution has the rest.
const RECEIPT_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunEnding {
    pub outcome: RunOutcome,
    pub result: RunResult,
}

impl RunEnding {
    pub(super) fn failed(error_text: String) -> RunEnding {
        let result = RunResult { error_text: Some(error_text), ..RunResult::default() };
        RunEnding { outcome: RunOutcome::Failed, result }
    }

    /// Returns the end of the run; None while its execution runs.
    pub(super) fn of(status: ExecutionStatus, execution: &Value, timeout_seconds: u32) -> Option<RunEnding> {
        let outcome = match status {
            ExecutionStatus::Completed => RunOutcome::Succeeded,
            ExecutionStatus::Failed | ExecutionStatus::PartialSuccess => RunOutcome::Failed,
            ExecutionStatus::Cancelled => RunOutcome::Cancelled,
            ExecutionStatus::Queued
            | ExecutionStatus::Initializing
            | ExecutionStatus::Running
            | ExecutionStatus::Paused => return None,
        };
        let error = &execution["errors"][0];
        // The response of a program or a server is the output of a success, and part of the error of a failure.
        let answer = match outcome {
            RunOutcome::Succeeded => &execution["outputs"],
            RunOutcome::Failed | RunOutcome::Cancelled => &error["details"],
        };
        let error_text = match outcome {
            RunOutcome::Succeeded => None,
            RunOutcome::Cancelled => Some("the execution was cancelled".to_owned()),
            RunOutcome::Failed if error["code"] == codes::EXECUTION_TIMEOUT.name() => {
                Some(format!("execution timed out after {timeout_seconds}s"))
            }
            RunOutcome::Failed => {
                let message = error["message"].as_str().unwrap_or("the execution failed");
                Some(message.to_owned())
            }
        };
        let status_code = answer["status_code"].as_u64().or(error["httpStatus"].as_u64());
        let result = RunResult {
            http_status_code: status_code.and_then(|code| u16::try_from(code).ok()),
            exit_code: answer["exit_code"].as_i64(),
            result_json: (outcome == RunOutcome::Succeeded).then(|| execution["outputs"].to_string()),
            error_text,
            receipts: receipts(answer, outcome),
        };
        Some(RunEnding { outcome, result })
    }
}

fn receipts(answer: &Value, outcome: RunOutcome) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    for stream in ["stdout", "stderr"] {
        if let Some(text) = answer[stream].as_str() {
            receipts.push(receipt(stream, "text/plain; charset=utf-8", text));
        }
    }
    if answer["status_code"].is_u64() {
        let content_type = answer["headers"]["content-type"].as_str().unwrap_or("application/octet-stream");
        let shown =
            json!({ "status": answer["status_code"], "headers": answer["headers"], "body": answer["data"] });
        receipts.push(receipt("http_response", content_type, &shown.to_string()));
    } else if let Some(body) = answer["body"].as_str() {
        receipts.push(receipt("http_response", "text/plain; charset=utf-8", body));
    }
    if receipts.is_empty() && outcome == RunOutcome::Succeeded {
        receipts.push(receipt("workflow_result", "application/json", &answer.to_string()));
    }
    receipts
}

fn receipt(kind: &str, content_type: &str, body: &str) -> Receipt {
    let end = (0..=RECEIPT_MAX.min(body.len())).rev().find(|end| body.is_char_boundary(*end)).unwrap_or(0);
    Receipt {
        receipt_kind: kind.to_owned(),
        content_type: content_type.to_owned(),
        body: body[..end].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(execution: Value) -> RunEnding {
        RunEnding::of(ExecutionStatus::Failed, &execution, 5).expect("a failed execution has ended")
    }

    #[test]
    fn a_running_execution_has_no_outcome() {
        for status in [ExecutionStatus::Queued, ExecutionStatus::Running, ExecutionStatus::Paused] {
            assert_eq!(RunEnding::of(status, &json!({}), 5), None, "{status:?}");
        }
    }

    #[test]
    fn a_timeout_is_a_failure_with_its_own_words() {
        let failed =
            failed(json!({ "errors": [{ "code": codes::EXECUTION_TIMEOUT.name(), "message": "x" }] }));
        assert_eq!(failed.outcome, RunOutcome::Failed);
        assert_eq!(failed.result.error_text.as_deref(), Some("execution timed out after 5s"));
    }

    #[test]
    fn the_answer_of_a_program_is_kept_after_a_failure_too() {
        let details = json!({ "exit_code": 3, "stdout": "out", "stderr": "x".repeat(RECEIPT_MAX + 1) });
        let result = failed(json!({ "errors": [{ "message": "it broke", "details": details }] })).result;
        assert_eq!((result.exit_code, result.error_text.as_deref()), (Some(3), Some("it broke")));
        let sizes: Vec<usize> = result.receipts.iter().map(|receipt| receipt.body.len()).collect();
        assert_eq!(sizes, [3, RECEIPT_MAX]);
    }
}
