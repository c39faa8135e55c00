//! Short names for what a session does.

use windlass_protocol::{Call, Unit};
use windlass_worker::session::{CallId, Output};

/// `run.fence`
pub fn unit(unit: Unit) -> String {
    format!("{}.{}", unit.run, unit.fence)
}

pub fn output(output: &Output) -> String {
    match output {
        Output::Call { id, call } => match (id, call) {
            (CallId::Register { number }, _) => format!("register#{number}"),
            (CallId::Beat { number }, Call::Beat(beat)) => {
                let holds: Vec<String> = beat.holds.iter().map(|held| unit(*held)).collect();
                format!("beat#{number} [{}]", holds.join(" "))
            }
            (CallId::Checkpoint { number, .. }, Call::Checkpoint(checkpoint)) => {
                format!("checkpoint#{number} {} {}", unit(checkpoint.unit), checkpoint.cursor)
            }
            (CallId::Report { .. }, Call::Report(report)) => {
                let outcome = match &report.outcome {
                    windlass_protocol::Outcome::Done { output } => format!("done {output}"),
                    windlass_protocol::Outcome::Failed(failure) => format!("failed {}", failure.code),
                    other => format!("{other:?}").to_lowercase(),
                };
                format!("report {} {outcome}", unit(report.unit))
            }
            other => panic!("a session makes no such call: {other:?}"),
        },
        Output::Start(work) => format!("start {}", unit(work.unit)),
        Output::Proceed(held) => format!("proceed {}", unit(*held)),
        Output::Stop { unit: held, grace_ms } => format!("stop {} {grace_ms}", unit(*held)),
    }
}
