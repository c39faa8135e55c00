//! The sandbox process of these tests: the test program starts itself.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use windlass_worker::{OwnCommand, sandbox};

/// The harness of tests writes to stdout; the answer has a stream of its own.
pub const APART: &str = "exec 3>&1 >/dev/null; exec \"$0\" \"$@\"";

#[test]
#[ignore = "what a sandbox process runs"]
fn sandbox_process() {
    if let Ok(output) = File::options().write(true).open("/proc/self/fd/3") {
        sandbox::run(io::stdin(), output).unwrap();
    }
}

pub fn sandbox_command() -> OwnCommand {
    let program = std::env::current_exe().unwrap().into_os_string();
    let args = ["--ignored", "--exact", "--nocapture", "sandbox::sandbox_process"].map(OsString::from);
    let args = ["-c".into(), APART.into(), program].into_iter().chain(args).collect();
    OwnCommand { program: "/bin/sh".into(), args }
}
