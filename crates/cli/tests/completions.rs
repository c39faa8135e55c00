//! `windlass completions`, from the outside.

use std::process::{Command, Stdio};

const COMMANDS: [&str; 8] = ["run", "validate", "executions", "patch", "--resume", "admin", "bench", "sim"];

fn windlass(shell: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["completions", shell]);
    command
}

#[test]
fn every_command_is_in_the_script() {
    let output = windlass("bash").output().expect("the binary runs");
    let script = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && COMMANDS.iter().all(|command| script.contains(command)));
}

#[test]
fn a_reader_that_hangs_up_is_an_error_and_no_panic() {
    let mut child =
        windlass("zsh").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}
