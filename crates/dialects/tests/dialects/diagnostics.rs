//! Diagnostics as users see them. Each file has bad documents, and under each of them what is printed about it.
//! `UPDATE_EXPECT=1 cargo test -p windlass-dialects` writes the files again: look at every line that changes.

use expect_test::expect_file;
use windlass_dialects::compile;

/// Begins a document, with the rest of the line as its title.
const DOCUMENT: &str = "=== ";
/// Ends a document and begins what is printed about it.
const PRINTED: &str = "---";

/// Returns the file as it should be: its documents, with what is printed about each of them now.
fn rendered(file: &str) -> String {
    let mut rendered = String::new();
    for part in file.split(DOCUMENT).skip(1) {
        let (title, rest) = part.split_once('\n').expect("a title is a line");
        let document = rest.split(&format!("\n{PRINTED}\n")).next().unwrap_or_default().trim_end();
        let compiled = compile(document);
        let printed = compiled.diagnostics.iter().map(|one| one.render(&compiled.shown, "FILE"));
        let printed: String = printed.collect();
        rendered.push_str(&format!("{DOCUMENT}{title}\n{document}\n{PRINTED}\n{printed}\n"));
    }
    rendered
}

#[test]
fn problems_of_playbooks_are_worded_so() {
    expect_file!["../diagnostics/playbook.txt"]
        .assert_eq(&rendered(include_str!("../diagnostics/playbook.txt")));
}

#[test]
fn problems_of_workflows_are_worded_so() {
    expect_file!["../diagnostics/workflow.txt"]
        .assert_eq(&rendered(include_str!("../diagnostics/workflow.txt")));
}

#[test]
fn problems_of_actions_are_worded_so() {
    expect_file!["../diagnostics/actions.txt"]
        .assert_eq(&rendered(include_str!("../diagnostics/actions.txt")));
}

#[test]
fn problems_of_documents_are_worded_so() {
    expect_file!["../diagnostics/documents.txt"]
        .assert_eq(&rendered(include_str!("../diagnostics/documents.txt")));
}

#[test]
fn problems_of_plans_are_worded_so() {
    expect_file!["../diagnostics/plan.txt"].assert_eq(&rendered(include_str!("../diagnostics/plan.txt")));
}
