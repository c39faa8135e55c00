//! Refuses values from outside that are nested too deep before they are part of a decision: every value in a journal
//! must be readable.

use windlass_kernel::{AgentAsk, ChildResult, Failure, Input, Outcome, Rejected, WorkResult, any_of, codes};
use windlass_protocol::{TOO_DEEP, is_too_deep};

/// Refuses an input with a value that is nested too deep. If the value ends a step, it becomes the failure of the
/// step.
pub(super) fn bound(input: &mut Input) -> Result<(), Rejected> {
    let deep = match input {
        Input::Report(report) => {
            let result = match &report.result {
                WorkResult::Done { output } => is_too_deep(output),
                WorkResult::Failed(failure) => is_too_deep(&failure.details),
                WorkResult::Child { definition, inputs, .. } => {
                    is_too_deep(definition) || is_too_deep(inputs)
                }
                WorkResult::Stopped | WorkResult::Later { .. } => false,
            };
            let noted = report.metadata.as_deref().is_some_and(is_too_deep);
            if result || noted || report.patch.values().any(|value| is_too_deep(value)) {
                report.result = WorkResult::Failed(too_deep());
                report.patch.clear();
                report.metadata = None;
            }
            false
        }
        Input::ChildEnded { result, .. } => {
            if is_too_deep(&result.output) {
                let failure = Some(too_deep());
                *result = ChildResult { outcome: Outcome::Failed, output: Default::default(), failure };
            }
            false
        }
        Input::Create(create) => is_too_deep(&create.inputs),
        Input::Patch { patch, .. } => patch.values().any(|value| is_too_deep(value)),
        Input::Agent { ask: AgentAsk::Execute { args: Some(args), .. }, .. } => is_too_deep(args),
        Input::Agent { ask: AgentAsk::Execute { args: None, .. }, .. }
        | Input::Agent {
            ask: AgentAsk::Skip { .. } | AgentAsk::Pause { .. } | AgentAsk::Fail { .. }, ..
        }
        | any_of![Input: Assign Begin StartFailed LeaseLost TimerDue RouteReady Complete Hold Resume Cancel ChildPaused
            Uploaded Continue] => false,
    };
    if deep { Err(Rejected::Malformed(TOO_DEEP)) } else { Ok(()) }
}

fn too_deep() -> Failure {
    Failure::new(codes::VALUE_TOO_DEEP, TOO_DEEP)
}
