//! Short names for what a session does.

use windlass_protocol::Unit;
use windlass_worker::session::Output;

/// `run.fence`
pub fn unit(unit: Unit) -> String {
    format!("{}.{}", unit.run, unit.fence)
}

pub fn output(output: &Output) -> String {
    match output {
        Output::Register { number, .. } => format!("register#{number}"),
        Output::Beat { number, beat } => {
            let holds: Vec<String> = beat.holds.iter().map(|held| unit(*held)).collect();
            format!("beat#{number} [{}]", holds.join(" "))
        }
        Output::Checkpoint { number, checkpoint } => {
            format!("checkpoint#{number} {} {}", unit(checkpoint.unit), checkpoint.cursor)
        }
        Output::Report(report) => {
            let outcome = match &report.outcome {
                windlass_protocol::Outcome::Done { output } => format!("done {output}"),
                other => format!("{other:?}").to_lowercase(),
            };
            format!("report {} {outcome}", unit(report.unit))
        }
        Output::Start(work) => format!("start {}", unit(work.unit)),
        Output::Proceed(held) => format!("proceed {}", unit(*held)),
        Output::Stop { unit: held, grace_ms } => format!("stop {} {grace_ms}", unit(*held)),
    }
}
