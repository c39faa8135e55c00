//! Positions of code in a definition, so that a failure of the code can name the line of the definition.

use crate::diagnostic::Lines;
use std::ops::Range;
use windlass_views::CodePlace;

/// The code of a task, and the bytes of the definition that it was written in.
#[derive(Debug)]
pub(crate) struct TaskCode<'d> {
    pub(crate) step: &'d str,
    pub(crate) task: &'d str,
    pub(crate) at: Range<usize>,
}

/// Finds the lines of all code of a definition, in one pass over its text.
pub(crate) fn code_places<'d>(source: &str, code: impl Iterator<Item = TaskCode<'d>>) -> Vec<CodePlace> {
    let mut code: Vec<TaskCode<'d>> = code.filter(|code| source.get(code.at.clone()).is_some()).collect();
    // Calls of one workbook entry have the same position.
    code.sort_by_key(|code| code.at.start);
    let mut lines = Lines::of(source);
    code.into_iter().map(|code| code_place(source, &mut lines, &code)).collect()
}

fn code_place(source: &str, lines: &mut Lines<'_>, code: &TaskCode<'_>) -> CodePlace {
    let (line, column) = lines.place(code.at.start);
    let (step, task) = (code.step.to_owned(), code.task.to_owned());
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let Some(header) = block_header(&source[..code.at.start]) else {
        return CodePlace { step, task, line: number(line), column: number(column), is_block: false };
    };
    let before = source[header..code.at.start].matches('\n').count();
    let body = source[header..].lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default();
    let indent = body.len() - body.trim_start_matches(' ').len();
    // The first line of the block is the one after its header.
    CodePlace { step, task, line: number(line + 1 - before), column: number(indent + 1), is_block: true }
}

/// Returns the end of the header of a literal block (`|`, `|-`, `|2`) if the text ends with one and blank lines.
fn block_header(before: &str) -> Option<usize> {
    let head = before.trim_end();
    if !before[head.len()..].contains('\n') {
        return None;
    }
    let line = &head[head.rfind('\n').map_or(0, |newline| newline + 1)..];
    let header = line.split(" #").next().unwrap_or_default().trim_end();
    let indicators = header.trim_end_matches(|sign: char| sign.is_ascii_digit() || "+-".contains(sign));
    indicators.ends_with('|').then_some(head.len())
}

#[cfg(test)]
mod tests {
    use crate::compile;

    /// Lists line, column and form of all code in a definition.
    fn check(text: &str, expected: &[(&str, u32, u32, bool)]) {
        let found = compile(text).manifest.code;
        let found: Vec<_> =
            found.iter().map(|code| (&*code.task, code.line, code.column, code.is_block)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn code_knows_its_lines() {
        let play = |tool: &str| format!("workflow:\n  - step: a\n    tool:\n{tool}");
        let block =
            |header: &str, body: &str| play(&format!("      kind: python\n      code: {header}\n{body}"));
        check(&block("|", "        x = 1\n        y = 2\n"), &[("a_task", 6, 9, true)]);
        check(&block("|- # why", "\n\n        x = 1\n"), &[("a_task", 6, 9, true)]);
        check(&block("|2", "          x = 1\n"), &[("a_task", 6, 11, true)]);
        check(&block(">", "        x = 1\n"), &[("a_task", 6, 9, false)]);
        check(&block("'x = 1'", ""), &[("a_task", 5, 13, false)]);
        check(&block("\n        x | y", ""), &[("a_task", 6, 9, false)]);
        let list = "      - one: {kind: python, code: 'x = 1'}\n      - two:\n          kind: python\n          script:\n            code: |\n              x = 1\n";
        check(&play(list), &[("one", 4, 35, false), ("two", 9, 15, true)]);
        let workbook = "workbook:\n  - name: w\n    tool:\n      kind: python\n      code: |\n        x = 1\nworkflow:\n  - step: a\n    tool: {kind: workbook, name: w}\n";
        check(workbook, &[("a_task", 6, 9, true)]);
        check(
            r#"{"name": "w", "nodes": [{"id": "t", "type": "trigger"},
                {"id": "c", "type": "code", "config": {"language": "javascript", "code": "a\nb"}}],
                "edges": [{"source": "t", "target": "c"}]}"#,
            &[("c", 2, 90, false)],
        );
    }
}
