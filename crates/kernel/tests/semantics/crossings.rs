//! The crossings of docs/semantics.md: each control input is sent in each situation, and a cell states the result. A cell
//! without an expectation does not compile.

use crate::crossing::{Control, Situation};

const DOCUMENT: &str = include_str!("../../../../docs/semantics.md");
const MARK: &str = "<!-- crossings -->";
const ROWS: usize = 9;
const COLUMNS: usize = 11;

const _: () = assert!(is_complete(DOCUMENT.as_bytes()), "docs/semantics.md: a crossing has no expectation");

/// Asserts that every row after the mark and two heading lines has a name and a cell per column.
const fn is_complete(text: &[u8]) -> bool {
    let mut at = match find(text, MARK.as_bytes()) {
        Some(at) => at,
        None => return false,
    };
    let mut line = 0;
    while line < 3 {
        at = next_line(text, at);
        line += 1;
    }
    let mut row = 0;
    while row < ROWS {
        if written_cells(text, at) != COLUMNS + 1 {
            return false;
        }
        at = next_line(text, at);
        row += 1;
    }
    true
}

const fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at + what.len() <= text.len() {
        let mut same = 0;
        while same < what.len() && text[at + same] == what[same] {
            same += 1;
        }
        if same == what.len() {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn next_line(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'\n' {
        at += 1;
    }
    at + 1
}

/// Returns the number of cells in a table row that are not blank.
const fn written_cells(text: &[u8], mut at: usize) -> usize {
    let (mut cells, mut written, mut bars) = (0, false, 0);
    while at < text.len() && text[at] != b'\n' {
        if text[at] == b'|' {
            if written && bars > 0 {
                cells += 1;
            }
            bars += 1;
            written = false;
        } else if text[at] != b' ' {
            written = true;
        }
        at += 1;
    }
    cells
}

fn cell(control: Control, situation: Situation) -> String {
    let table = DOCUMENT.split(MARK).nth(1).unwrap();
    let row = table.lines().filter(|line| line.starts_with('|')).nth(2 + control as usize).unwrap();
    row.split('|').nth(2 + situation as usize).unwrap().trim().to_owned()
}

fn check(control: Control, situation: Situation) {
    assert_eq!(
        crate::crossing::play(control, situation),
        cell(control, situation),
        "{control:?} × {situation:?}"
    );
}

macro_rules! crossings {
    ($($control:ident: $name:ident),*) => {
        $(mod $name {
            use super::{Control, Situation, check};
            #[test] fn ready() { check(Control::$control, Situation::Ready) }
            #[test] fn in_flight() { check(Control::$control, Situation::InFlight) }
            #[test] fn backoff() { check(Control::$control, Situation::Backoff) }
            #[test] fn waiting_for_routing() { check(Control::$control, Situation::WaitingForRouting) }
            #[test] fn at_a_gate() { check(Control::$control, Situation::AtAGate) }
            #[test] fn awaiting_manual() { check(Control::$control, Situation::AwaitingManual) }
            #[test] fn loop_iteration() { check(Control::$control, Situation::LoopIteration) }
            #[test] fn child_execution() { check(Control::$control, Situation::ChildExecution) }
            #[test] fn draining() { check(Control::$control, Situation::Draining) }
            #[test] fn compensating() { check(Control::$control, Situation::Compensating) }
            #[test] fn finalizing() { check(Control::$control, Situation::Finalizing) }
        })*
    };
}

crossings!(
    Hold: hold,
    Resume: resume,
    Cancel: cancel,
    ForcedCancel: forced_cancel,
    ExecutionTimeout: execution_timeout,
    ContextPatch: context_patch,
    LeaseLost: lease_lost,
    Restart: restart,
    RetryFromStep: retry_from_step
);
