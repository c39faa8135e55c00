//! Conversion of refusals of the engine into errors: conflicts are 409, requests that can never succeed are 400.

use super::missing;
use crate::app::unexpected_answer;
use crate::problem::{Problem, ProblemCode};
use windlass_engine::{EngineAnswer, NotRetried, Refusal, describe_lost};
use windlass_kernel::Rejected;

/// Seconds after which a tenant with too many open executions may retry. The real time depends on when one ends.
const ROOM_RETRY_SECONDS: u64 = 5;

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let message = refusal.to_string();
        match refusal {
            Refusal::Rejected(rejected) => of_rejected(&rejected, message),
            Refusal::NoExecution(id) => missing(id),
            Refusal::NoDefinition => Problem::not_found("workflow", "of this execution"),
            Refusal::HookTaken(_) => Problem::conflict(message),
            Refusal::KeyTaken => Problem::new(ProblemCode::IdempotencyKeyReused, message),
            // The message names the input.
            Refusal::BadInputs(_) => Problem::bad_request(message.clone()).at("inputs", message),
            Refusal::Quarantined { .. } => Problem::new(ProblemCode::Quarantined, message),
            Refusal::NoRoom { .. } => Problem::too_many(message, ROOM_RETRY_SECONDS),
            Refusal::NotQuarantined(_) => Problem::conflict(message),
            Refusal::Unreadable(_) => Problem::internal(message),
            Refusal::NotRetried(not) => of_not_retried(&not, message),
        }
    }
}

fn of_rejected(rejected: &Rejected, message: String) -> Problem {
    match rejected {
        Rejected::Ended(_) => {
            let message = format!("{message}; retry it to run steps again");
            Problem::new(ProblemCode::ExecutionEnded, message)
        }
        Rejected::Conflict { .. }
        | Rejected::Exists
        | Rejected::StaleFence { .. }
        | Rejected::OtherAnswer { .. }
        | Rejected::NotWaiting { .. }
        | Rejected::NotDue { .. } => Problem::conflict(message),
        Rejected::ContextTooLarge { .. } => Problem::too_large(message),
        Rejected::NotCreated => Problem::new(ProblemCode::NotFound, message),
        Rejected::UnknownRun(_)
        | Rejected::UnknownStep(_)
        | Rejected::UnknownToken(_)
        | Rejected::WrongGeneration { .. }
        | Rejected::Malformed(_) => Problem::bad_request(message),
        Rejected::Needs(_) | Rejected::WrongNet | Rejected::Broken(_) => Problem::internal(message),
    }
}

fn of_not_retried(not: &NotRetried, message: String) -> Problem {
    match not {
        NotRetried::NoStep { .. } | NotRetried::Final { .. } => Problem::invalid("fromNode", message),
        NotRetried::NoFiring { .. } | NotRetried::NoFirings => Problem::invalid("firing", message),
        NotRetried::Lost(steps) => {
            let problem = Problem::conflict(message);
            steps.iter().fold(problem, |problem, (step, why)| {
                problem.at(step.clone(), format!("step `{step}` {}", describe_lost(*why)))
            })
        }
        NotRetried::NeverFired { .. } | NotRetried::Skipped { .. } => {
            Problem::conflict(message.clone()).at("fromNode", message)
        }
    }
}

/// Converts an answer that is not the expected one: a refusal, or a defect of the engine.
pub(crate) fn unexpected(answer: EngineAnswer) -> Problem {
    match answer {
        EngineAnswer::Refused(refusal) => refusal.into(),
        other => unexpected_answer(&other),
    }
}
