//! docs/cli.md names every command, docs/server.md every code of errors, docs/failures.md every code of failures, docs/tools.md
//! every tool of playbooks with its fields.

use std::collections::BTreeSet;
use std::process::Command;
use windlass_protocol::codes::{RESERVED, WORKER_LOST};
use windlass_protocol::{FailureCode, Tool, ToolRow};
use windlass_server::ProblemCode;

/// Commands as the program's help lists them.
fn listed(path: &[&str]) -> Vec<String> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_windlass")).args(path).arg("--help").output().expect("it runs");
    let help = String::from_utf8(output.stdout).expect("a text");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = commands.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    lines
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_command_is_in_the_table() {
    let page = include_str!("../../../docs/cli.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let top = listed(&[]);
    assert!(top.len() > 10, "{top:?}");
    for command in &top {
        let below = listed(&[command]);
        let own: Vec<&&str> = rows.iter().filter(|row| row.contains(&format!("`{command}"))).collect();
        assert!(!own.is_empty(), "`{command}` is missing in docs/cli.md");
        for name in below {
            let is_reported =
                own.iter().any(|row| row.contains(&format!(" {name}")) || row.contains(&format!("`{name}")));
            assert!(is_reported, "`{command} {name}` is missing in docs/cli.md");
        }
    }
}

#[test]
fn the_table_of_errors_is_that_of_the_code() {
    let page = include_str!("../../../docs/server.md");
    let rows: Vec<&str> =
        page.lines().skip_while(|line| *line != "| status | code | meaning |").skip(2).collect();
    for (row, code) in rows.iter().zip(ProblemCode::ALL) {
        let expected = format!("| {} | `{}` | {} |", code.status().as_u16(), code.name(), code.meaning());
        assert_eq!(*row, expected, "docs/server.md, section Errors");
    }
    assert!(!rows[ProblemCode::ALL.len()].starts_with('|'), "docs/server.md has a code that does not exist");
}

#[test]
fn the_tables_of_failures_are_those_of_the_code() {
    let page = include_str!("../../../docs/failures.md");
    let section = page.split("\n## Codes\n").nth(1).expect("docs/failures.md has a section Codes");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    for (row, code) in rows.iter().zip(FailureCode::all()) {
        let expected = format!("| `{}` | `{}` | {} |", code.name(), code.class().name(), code.meaning());
        assert_eq!(*row, expected, "docs/failures.md, section Codes");
    }
    assert_eq!(
        rows.len(),
        FailureCode::all().count(),
        "docs/failures.md has a row for each code and no other"
    );
}

/// Texts in backticks of a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn the_table_of_workflows_has_the_reserved_codes() {
    let page = include_str!("../../../docs/workflows.md");
    let mut rows = page.lines().skip_while(|line| *line != "| error codes | retried |").skip(2);
    for (answer, retried) in [("yes", true), ("no", false)] {
        let row = rows.next().and_then(|row| row.strip_suffix(&format!(" | {answer} |")));
        let found: BTreeSet<&str> = quoted(row.unwrap_or_else(|| panic!("no row `{answer}`"))).collect();
        // Recovery decides what follows the loss of a worker, not the retries of the node.
        let codes = RESERVED.iter().filter(|code| **code != WORKER_LOST);
        let codes = codes.filter(|code| code.class().retryable() == Some(retried));
        let expected: BTreeSet<&str> = codes.map(|code| code.name()).collect();
        assert_eq!(found, expected, "docs/workflows.md, the codes that are retried: {answer}");
    }
}

#[test]
fn tables_of_tools_name_the_class_of_each_code() {
    let page = include_str!("../../../docs/tools.md");
    let mut checked = 0;
    for row in page.lines().filter(|line| line.ends_with("| yes |") || line.ends_with("| no |")) {
        for code in FailureCode::all().filter(|code| quoted(row).any(|text| text == code.name())) {
            let class = format!("`{}`", code.class().name());
            let retried = if code.class().retryable() == Some(true) { "| yes |" } else { "| no |" };
            assert!(row.contains(&class) && row.ends_with(retried), "docs/tools.md: {row}");
            checked += 1;
        }
    }
    assert!(checked > 20, "docs/tools.md has tables of errors");
}

#[test]
fn the_table_of_tools_is_that_of_the_program() {
    let page = include_str!("../../../docs/tools.md");
    let (_, after) = page.split_once("|---|---|---|\n").expect("there is a table");
    let found: String = after.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
    let row = |row: &ToolRow| {
        let (kind, programs) = (row.kind, if row.runs_programs { "yes" } else { "no" });
        format!("| [`{kind}`](#{kind}) | {} | {programs} |\n", row.about)
    };
    let tools = Tool::ALL.iter().map(|tool| tool.row()).filter(|row| row.in_playbooks);
    let expected: String = tools.map(row).collect();
    assert_eq!(found, expected, "docs/tools.md must have these rows:\n{expected}");
}

#[test]
fn every_tool_of_playbooks_has_a_section_that_names_its_fields() {
    let page = include_str!("../../../docs/tools.md");
    for row in Tool::ALL.iter().map(|tool| tool.row()).filter(|row| row.in_playbooks) {
        let section = page.split(&format!("\n## {}\n", row.kind)).nth(1);
        let section = section.unwrap_or_else(|| panic!("docs/tools.md has no section `{}`", row.kind));
        let section = section.split("\n## ").next().unwrap_or_default();
        for field in row.fields.iter().filter(|field| field.instead.is_none()) {
            assert!(section.contains(&format!("`{}`", field.name)), "`{}` of {}", field.name, row.kind);
        }
    }
}
