//! Ids in the API: a prefix and 32 hexadecimal digits. Routes accept a bare UUID, too.

use crate::host::now;
use crate::problem::Problem;
use windlass_dialects::Dialects;
use windlass_kernel::ExecutionId;
use windlass_store::{ActionId, DeadLetterId, ScheduleId, ScheduleRunId, WorkflowId};

const DIGITS: usize = 32;

/// Parses an id with or without its prefix.
#[must_use]
pub(crate) fn number(prefix: &str, text: &str) -> Option<u128> {
    let bare = text.strip_prefix(prefix).unwrap_or(text);
    let digits: String = match bare.len() {
        DIGITS => bare.to_owned(),
        // A UUID with dashes.
        36 if has_dashes(bare) => bare.chars().filter(|c| *c != '-').collect(),
        _ => return None,
    };
    let is_hex = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(&digits, 16).ok()).flatten()
}

fn has_dashes(text: &str) -> bool {
    text.match_indices('-').map(|(place, _)| place).eq([8, 13, 18, 23])
}

/// Parses the id of a workflow. A malformed id is answered like an unknown one.
pub(crate) fn workflow(text: &str) -> Result<WorkflowId, Problem> {
    // Definitions that are identified by their content are workflows, too.
    let by_content = || Dialects::builtin().content_prefixes().find_map(|prefix| number(prefix, text));
    let id = number("wf_", text).or_else(by_content);
    id.map(WorkflowId).ok_or_else(|| Problem::not_found("workflow", text))
}

/// Parses an id that follows from the content of a definition, with its prefix.
pub(crate) fn content(prefix: &str, text: &str) -> Option<WorkflowId> {
    number(prefix, text).map(WorkflowId)
}

/// Parses the id of a plan. A malformed id is answered like an unknown one.
pub(crate) fn plan(text: &str) -> Result<WorkflowId, Problem> {
    number("pl_", text).map(WorkflowId).ok_or_else(|| Problem::not_found("plan", text))
}

/// Parses the id of an execution. A malformed id is answered like an unknown one.
pub(crate) fn execution(text: &str) -> Result<ExecutionId, Problem> {
    number("exec_", text).map(ExecutionId).ok_or_else(|| Problem::not_found("execution", text))
}

/// Parses the id of a schedule. A malformed id is answered like an unknown one.
pub(crate) fn schedule(text: &str) -> Result<ScheduleId, Problem> {
    number("sch_", text).map(ScheduleId).ok_or_else(|| Problem::not_found("schedule", text))
}

/// Parses the id of a run. A malformed id is answered like an unknown one.
pub(crate) fn schedule_run(text: &str) -> Result<ScheduleRunId, Problem> {
    number("run_", text).map(ScheduleRunId).ok_or_else(|| Problem::not_found("run", text))
}

/// Parses the id of a dead letter. A malformed id is answered like an unknown one.
pub(crate) fn dead_letter(text: &str) -> Result<DeadLetterId, Problem> {
    number("dlq_", text).map(DeadLetterId).ok_or_else(|| Problem::not_found("dead letter", text))
}

#[must_use]
pub(crate) fn format_action(id: ActionId) -> String {
    format!("act_{:032x}", id.0)
}

#[must_use]
pub(crate) fn format_plan(id: WorkflowId) -> String {
    format!("pl_{:032x}", id.0)
}

#[must_use]
pub(crate) fn format_schedule(id: ScheduleId) -> String {
    format!("sch_{:032x}", id.0)
}

#[must_use]
pub(crate) fn format_run(id: ScheduleRunId) -> String {
    format!("run_{:032x}", id.0)
}

#[must_use]
pub(crate) fn format_dead_letter(id: DeadLetterId) -> String {
    format!("dlq_{:032x}", id.0)
}

/// Reports whether a string has the format of a tenant's id: `default`, or `tnt_` and 32 hexadecimal digits.
#[must_use]
pub(crate) fn is_tenant(text: &str) -> bool {
    let digits = text.strip_prefix("tnt_").filter(|digits| digits.len() == DIGITS);
    text == "default" || digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Returns a new id: a prefix and a UUID of version 7.
pub fn fresh(prefix: &str) -> Result<String, Problem> {
    Ok(format!("{prefix}{:032x}", fresh_number()?))
}

pub(crate) fn fresh_number() -> Result<u128, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(format!("no random bytes: {error}")))?;
    Ok(windlass_engine::new_execution_id(now(), u128::from_le_bytes(random)).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_with_and_without_prefix_and_dashes() {
        let digits = "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b";
        let dashed = "0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B";
        let expected = u128::from_str_radix(digits, 16).ok();
        assert_eq!(number("wf_", &format!("wf_{digits}")), expected);
        assert_eq!(number("wf_", digits), expected);
        assert_eq!(number("wf_", dashed), expected);
    }

    #[test]
    fn a_malformed_id_is_not_found() {
        let digits = "019000000000700080000000000000ff";
        assert_eq!(execution(&format!("exec_{digits}")).map(|id| id.to_string()), Ok(digits.to_owned()));
        for text in ["", "exec_", "exec_1", &format!("wf_{digits}"), &format!("exec_+{}", &digits[1..])] {
            assert_eq!(execution(text).map_err(|problem| problem.status().as_u16()), Err(404), "{text}");
        }
    }

    #[test]
    fn strings_of_another_format_are_refused() {
        let digits = "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b";
        let wrong = ["", "wf_", &digits[1..], &format!("exec_{digits}"), &format!("+{}", &digits[1..]), "ä"];
        for text in wrong {
            assert_eq!(number("wf_", text), None, "{text}");
        }
        assert_eq!(number("wf_", "0190a1b2c-3d4-7e5f-8a9b-0c1d2e3f4a5b"), None);
    }
}
