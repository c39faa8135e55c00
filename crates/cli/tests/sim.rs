//! `windlass sim` from the outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

fn words(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass")).arg("sim").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_same_seed_prints_the_same_standard_output() {
    for args in
        [&["--seed", "7", "--executions", "50"][..], &["--system", "--seed", "7", "--executions", "10"]]
    {
        let output = words(args);
        assert!(output.contains("no rule was broken"), "{output}");
        assert_eq!(output, words(args));
    }
}
