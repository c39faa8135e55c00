//! Faults for tests, in builds with debug assertions only: the process aborts or hangs while a thread works on an
//! execution, like one with a defect.

use std::sync::OnceLock;
use std::time::Duration;
use windlass_kernel::ExecutionId;

/// `abort lane 0123…`, or `hang pool *` for the first execution.
const VARIABLE: &str = "WINDLASS_FAULT";

/// Longer than any test waits.
const HANG: Duration = Duration::from_secs(3_600);

static FAULT: OnceLock<Option<String>> = OnceLock::new();

pub(super) fn inject_fault(thread: &str, execution: ExecutionId) {
    let Some(fault) = FAULT.get_or_init(|| std::env::var(VARIABLE).ok()) else { return };
    let mut words = fault.split_ascii_whitespace();
    let (what, at, of) = (words.next(), words.next(), words.next());
    if at != Some(thread) || !of.is_some_and(|of| of == "*" || of == execution.to_string()) {
        return;
    }
    match what {
        Some("abort") => std::process::abort(),
        Some("hang") => std::thread::sleep(HANG),
        _ => {}
    }
}
