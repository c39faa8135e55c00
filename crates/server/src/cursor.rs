//! Places in lists, as callers hold them: opaque, and of one list only.

use crate::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The text of a place in the list of that name.
#[must_use]
pub fn write(list: &str, place: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{place}"))
}

/// The place that a text of [`write`] names; any other text is a 400.
pub fn read(list: &str, text: &str) -> Result<i64, Problem> {
    let bad = || Problem::invalid("cursor", "this is no cursor of this list; take it from the answer before");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| bad())?;
    let place = text.strip_prefix(list).and_then(|rest| rest.strip_prefix(':')).ok_or_else(bad)?;
    place.parse().map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_by_its_list_alone() {
        for place in [0, 1, i64::MAX, i64::MIN] {
            assert_eq!(read("audit", &write("audit", place)).unwrap(), place);
        }
        for wrong in
            ["", "abc", "%%", &write("versions", 1), &write("audit:", 1), &URL_SAFE_NO_PAD.encode("audit:x")]
        {
            let problem = read("audit", wrong).expect_err("it is refused");
            assert_eq!(
                (problem.status.as_u16(), problem.details[0].path.as_str()),
                (400, "cursor"),
                "{wrong}"
            );
        }
    }
}
