//! Runs trace line by line. Every pipeline of these tests is also run with a new worker after every call, which must say
//! the same.

use crate::pipeline::called;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{Outcome, Work};
use windlass_worker::{Next, Run};

/// `label[#try] kind config`, `wait MS`, `later MS`, `done OUTPUT` or `failed CLASS CODE: MESSAGE DETAILS`, each with what it
/// sets in the context.
pub fn trace_of(work: &Work, answers: &[Value]) -> Vec<String> {
    let through = trace(work, answers, Worker::Same);
    assert_eq!(
        trace(work, answers, Worker::NewAfterEachCall),
        through,
        "a run that is taken over has the same trace"
    );
    through
}

#[derive(Clone, Copy, PartialEq)]
enum Worker {
    Same,
    NewAfterEachCall,
}

fn trace(work: &Work, answers: &[Value], worker: Worker) -> Vec<String> {
    let mut answers = answers.iter();
    let mut run = Run::begin(work.clone());
    let mut lines = Vec::new();
    let mut kept: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    loop {
        let next = run.advance();
        match next {
            Next::Open(handles) => panic!("no secret was named: {handles:?}"),
            Next::Keep(made) => kept.extend(made.into_iter().map(|artifact| (artifact.key, artifact.bytes))),
            Next::Load(keys) => {
                run.loaded(keys.into_iter().map(|key| (key.clone(), kept.get(&key).cloned())).collect());
            }
            Next::Checkpoint(cursor) => {
                if worker == Worker::NewAfterEachCall {
                    run = Run::begin(at(work, cursor));
                }
            }
            Next::Wait { delay_ms } => lines.push(format!("wait {delay_ms}")),
            Next::Call(ref call) => {
                assert_eq!(run.advance(), next, "asked again, it is the same call");
                let number =
                    if call.try_number == 1 { String::new() } else { format!("#{}", call.try_number) };
                let config = Value::Object(call.config.clone());
                lines.push(format!("{}{number} {} {config}", call.label, call.kind));
                run.answer(called(answers.next().expect("the run wants more answers than there are")));
            }
            Next::Report(report) => {
                lines.push(format!("{}{}", end(&report.outcome), set(&report.patch)));
                let Outcome::Later { cursor, .. } = report.outcome else { break };
                run = Run::begin(at(work, cursor));
            }
        }
    }
    assert_eq!(answers.next(), None, "the run ended before all answers were used: {lines:?}");
    lines
}

/// Returns the work with a stored cursor, converted to text and back.
fn at(work: &Work, cursor: Value) -> Work {
    let stored = serde_json::from_str(&cursor.to_string()).unwrap();
    Work { cursor: Some(Arc::new(stored)), ..work.clone() }
}

fn end(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { output } => format!("done {output}"),
        Outcome::Failed(failure) if failure.details.is_null() => {
            format!("failed {} {}: {}", failure.class.name(), failure.code, failure.message)
        }
        Outcome::Failed(failure) => {
            format!(
                "failed {} {}: {} {}",
                failure.class.name(),
                failure.code,
                failure.message,
                failure.details
            )
        }
        Outcome::Stopped => "stopped".to_owned(),
        Outcome::Later { delay_ms, .. } => format!("later {delay_ms}"),
        Outcome::Child { definition, inputs, .. } => format!("child {definition} {inputs}"),
    }
}

fn set(patch: &Map<String, Value>) -> String {
    if patch.is_empty() { String::new() } else { format!(" set {}", Value::Object(patch.clone())) }
}
