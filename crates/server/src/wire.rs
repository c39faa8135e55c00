//! Ids, times and places in lists as they come over the wire.

use crate::ids::number;
use crate::problem::Problem;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use windlass_kernel::ExecutionId;

/// `exec_` and 32 digits, or a UUID. What is no id is not found either.
pub fn execution(text: &str) -> Result<ExecutionId, Problem> {
    number("exec_", text).map(ExecutionId).ok_or_else(|| Problem::not_found("execution", text))
}

/// How many entries of a list are wanted.
pub fn limit(asked: Option<u32>, usual: u32, most: u32) -> Result<usize, Problem> {
    match asked.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit as usize),
        _ => Err(Problem::invalid("limit", format!("must be a whole number from 1 to {most}"))),
    }
}

/// A place in a list, for whoever asks for the next page. What it holds is nobody's business.
pub fn cursor(place: &str) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

pub fn place<T>(cursor: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Problem> {
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let wrong = || Problem::invalid("cursor", "is not a cursor that this list gave");
    text.as_deref().and_then(read).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_a_prefix_or_are_uuids() {
        let id = Ok(ExecutionId(0x0190_0000_0000_7000_8000_0000_0000_00ff));
        for text in [
            "exec_019000000000700080000000000000ff",
            "019000000000700080000000000000ff",
            "01900000-0000-7000-8000-0000000000ff",
        ] {
            assert_eq!(execution(text), id, "{text}");
        }
        for text in [
            "",
            "exec_",
            "exec_1",
            "wf_019000000000700080000000000000ff",
            "0190000000007000-8000-0000000000ff",
            "exec_+19000000000700080000000000000ff",
        ] {
            assert_eq!(execution(text).map_err(|problem| problem.status.as_u16()), Err(404), "{text}");
        }
    }

    #[test]
    fn a_cursor_comes_back_and_anything_else_is_refused() {
        let number = |text: &str| text.parse::<u64>().ok();
        assert_eq!(place(&cursor("17"), number), Ok(17));
        for text in ["", "17", "!!", &cursor("x")] {
            assert_eq!(
                place(text, number).map_err(|problem| problem.details[0].path.clone()),
                Err("cursor".to_owned())
            );
        }
    }

    #[test]
    fn limits_are_strict() {
        assert_eq!((limit(None, 20, 100), limit(Some(100), 20, 100)), (Ok(20), Ok(100)));
        assert!(limit(Some(0), 20, 100).is_err() && limit(Some(101), 20, 100).is_err());
    }
}
