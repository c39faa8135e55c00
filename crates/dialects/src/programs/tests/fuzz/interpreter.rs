//! Python code in the real interpreter: one process for all cases.

use super::random::Random;
use super::{Verdict, WORDS, code, is_template, reference, rendered, repeat, scope, values};
use crate::programs::python;
use serde_json::{Map, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// It has the same effect as the reference.
    Same,
    /// It executes no value.
    Safe,
}

struct Interpreter {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Interpreter {
    fn start() -> Interpreter {
        let mut command = Command::new("python3");
        command.args(["-c", include_str!("interpreter.py")]).env("PYTHONUTF8", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Interpreter { child, input, output }
    }

    fn judge(&mut self, program: &str, code: &str, values: &[String; 2], check: Check) -> String {
        let words: Map<_, _> =
            WORDS.iter().zip(values).map(|((_, word), value)| ((*word).to_owned(), json!(value))).collect();
        let case = json!({
            "program": program, "reference": reference(code), "values": words, "compare": check == Check::Same,
        });
        writeln!(self.input, "{case}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}\n{program}"))
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn judge(interpreter: &mut Interpreter, code: &str, random: &mut Random, check: Check) -> Verdict {
    let values = [values::hostile(random), values::hostile(random)];
    let Ok(source) = python(code) else { return Verdict::Skipped };
    if !is_template(code) {
        return Verdict::Skipped;
    }
    let Some(program) = rendered(&source, &scope(&values)) else { return Verdict::Skipped };
    match interpreter.judge(&program, code, &values, check) {
        held if held == "held" => Verdict::Held,
        skipped if skipped == "skipped" => Verdict::Skipped,
        wrong => Verdict::Failed(format!(
            "{wrong}\n--- code ---\n{code}\n--- program ---\n{program}\n--- values ---\n{values:?}"
        )),
    }
}

#[test]
fn code_does_the_same_with_hostile_values_as_with_a_word() {
    let mut interpreter = Interpreter::start();
    repeat("programs", 30, |random| judge(&mut interpreter, &code::program(random), random, Check::Same));
}

#[test]
fn no_value_is_run_by_any_code() {
    let mut interpreter = Interpreter::start();
    // Few texts are programs; those that are none must not run a value either.
    repeat("texts", 1, |random| judge(&mut interpreter, &code::soup(random), random, Check::Safe));
}
