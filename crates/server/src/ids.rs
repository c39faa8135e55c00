//! Ids on the wire: a prefix and 32 hexadecimal digits. Routes take the bare UUID, too.

use crate::host::now;
use crate::problem::Problem;
use windlass_kernel::ExecutionId;
use windlass_store::WorkflowId;

const DIGITS: usize = 32;

/// The number that an id on the wire stands for.
#[must_use]
pub fn number(prefix: &str, text: &str) -> Option<u128> {
    let bare = text.strip_prefix(prefix).unwrap_or(text);
    let digits: String = match bare.len() {
        DIGITS => bare.to_owned(),
        // A UUID as people write it.
        36 if has_dashes(bare) => bare.chars().filter(|c| *c != '-').collect(),
        _ => return None,
    };
    let is_hex = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(&digits, 16).ok()).flatten()
}

fn has_dashes(text: &str) -> bool {
    text.match_indices('-').map(|(place, _)| place).eq([8, 13, 18, 23])
}

/// What cannot be the id of a workflow is that of none.
pub fn workflow(text: &str) -> Result<WorkflowId, Problem> {
    number("wf_", text).map(WorkflowId).ok_or_else(|| Problem::not_found("workflow", text))
}

/// What cannot be the id of an execution is that of none.
pub fn execution(text: &str) -> Result<ExecutionId, Problem> {
    number("exec_", text).map(ExecutionId).ok_or_else(|| Problem::not_found("execution", text))
}

/// Reports whether a text has the form of a tenant's id: `default`, or `tnt_` and 32 hexadecimal digits.
#[must_use]
pub fn is_tenant(text: &str) -> bool {
    let digits = text.strip_prefix("tnt_").filter(|digits| digits.len() == DIGITS);
    text == "default" || digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// A UUID of version 7 behind a prefix.
pub fn fresh(prefix: &str) -> Result<String, Problem> {
    Ok(format!("{prefix}{:032x}", fresh_number()?))
}

pub fn fresh_number() -> Result<u128, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(format!("no random bytes: {error}")))?;
    Ok(windlass_engine::new_execution_id(now(), u128::from_le_bytes(random)).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_with_and_without_prefix_and_dashes() {
        let digits = "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b";
        let dashed = "0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B";
        let expected = u128::from_str_radix(digits, 16).ok();
        assert_eq!(number("wf_", &format!("wf_{digits}")), expected);
        assert_eq!(number("wf_", digits), expected);
        assert_eq!(number("wf_", dashed), expected);
    }

    #[test]
    fn what_is_no_id_is_not_found() {
        let digits = "019000000000700080000000000000ff";
        assert_eq!(execution(&format!("exec_{digits}")).map(|id| id.to_string()), Ok(digits.to_owned()));
        for text in ["", "exec_", "exec_1", &format!("wf_{digits}"), &format!("exec_+{}", &digits[1..])] {
            assert_eq!(execution(text).map_err(|problem| problem.status().as_u16()), Err(404), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let digits = "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b";
        let wrong = ["", "wf_", &digits[1..], &format!("exec_{digits}"), &format!("+{}", &digits[1..]), "ä"];
        for text in wrong {
            assert_eq!(number("wf_", text), None, "{text}");
        }
        assert_eq!(number("wf_", "0190a1b2c-3d4-7e5f-8a9b-0c1d2e3f4a5b"), None);
    }
}
