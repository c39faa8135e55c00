//! References: paths to a parameter of the plan or to an output of a step.
//!
//! ```text
//! params.NAME drill*
//! steps.STEP.outputs.NAME drill*        drill: .FIELD | [INDEX]
//! ```

use super::model::Segment;
use windlass_protocol::RefSource;

/// Maximum length of a reference.
const LENGTH_MAX: usize = 1_000;

/// Syntax of a reference, for hints.
pub(super) const FORM: &str =
    "write `params.NAME` or `steps.STEP.outputs.NAME`, and behind it `.FIELD` or `[INDEX]`";

/// Parses a reference, or returns what is wrong with it.
pub(super) fn parse(text: &str) -> Result<(RefSource, Vec<Segment>), String> {
    if text.len() > LENGTH_MAX {
        return Err(format!("a reference has at most {LENGTH_MAX} bytes, not {}", text.len()));
    }
    if text.contains("{{") {
        return Err(format!("`{text}` is a template, and a reference is a path"));
    }
    let segments = split(text)?;
    let field = |at: usize| match segments.get(at) {
        Some(Segment::Field(name)) => Some(name.as_str()),
        _ => None,
    };
    let wrong = || format!("`{text}` is not a reference");
    match (field(0), field(1), field(2), field(3)) {
        (Some("params"), Some(name), ..) => Ok((RefSource::Param(name.to_owned()), segments[2..].to_vec())),
        (Some("steps"), Some(step), Some("outputs"), Some(output)) => {
            let from = RefSource::Output { step: step.to_owned(), output: output.to_owned() };
            Ok((from, segments[4..].to_vec()))
        }
        _ => Err(wrong()),
    }
}

fn split(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        let is_name =
            |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == ']');
        if !is_name(name) {
            return Err(format!(
                "`{text}` is not a reference: a name is missing or has a sign that names do not have"
            ));
        }
        segments.push(Segment::Field(name.to_owned()));
        rest = &rest[end..];
        while let Some(index) = rest.strip_prefix('[') {
            let (digits, after) =
                index.split_once(']').ok_or_else(|| format!("`{text}` has a `[` without `]`"))?;
            let index = digits.parse().map_err(|_| format!("`[{digits}]` in `{text}` is not an index"))?;
            segments.push(Segment::Index(index));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(segments),
            None => return Err(format!("`{text}` is not a reference: `.` or `[` must follow an index")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match parse(text) {
            Ok((from, drill)) => {
                format!("{from:?} {:?}", drill.iter().map(Segment::text).collect::<Vec<_>>())
            }
            Err(message) => message,
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn references_are_paths() {
        check("params.a", r#"Param("a") []"#);
        check("params.a.b[0].c", r#"Param("a") ["b", "0", "c"]"#);
        check("steps.run-tests.outputs.report", r#"Output { step: "run-tests", output: "report" } []"#);
        check("steps.a.outputs.b[1][2].c", r#"Output { step: "a", output: "b" } ["1", "2", "c"]"#);
        check("steps.a.b", "`steps.a.b` is not a reference");
        check("params", "`params` is not a reference");
        check("params[0]", "`params[0]` is not a reference");
        check("{{ params.a }}", "`{{ params.a }}` is a template, and a reference is a path");
        check("params.a[x]", "`[x]` in `params.a[x]` is not an index");
        check("params.a[0", "`params.a[0` has a `[` without `]`");
        check("params.a[0]b", "`params.a[0]b` is not a reference: `.` or `[` must follow an index");
        check(
            "params..a",
            "`params..a` is not a reference: a name is missing or has a sign that names do not have",
        );
        check(
            "params.a b",
            "`params.a b` is not a reference: a name is missing or has a sign that names do not have",
        );
        check("", "`` is not a reference: a name is missing or has a sign that names do not have");
    }
}
