//! Reports of workers. Only a report under the open fence has an effect; a repeated report is accepted again.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft, children, retry};
use crate::event::{Delegated, Event, Gone};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Need, Rejected, Report, WorkResult};
use crate::net::Completion;
use crate::step_run::{Patch, RunState};

pub(super) fn handle_report(d: &mut Draft<'_>, report: &Report) -> Accepted {
    let open = d
        .state
        .run(report.run)
        .is_some_and(|run| matches!(run.state, RunState::Offered { fence } if fence == report.fence));
    if open {
        return accept_report(d, report);
    }
    let said = report.as_stored(d.net.policy().limits.inline_bytes);
    let same = |answer: &Answer| match answer {
        Answer::Report { result, patch } => {
            *result == said.result && patch.as_ref().is_none_or(|patch| *patch == said.patch)
        }
        Answer::Manual(_) | Answer::Child => false,
    };
    answer_repeated(d, report.run, report.fence, same)
}

/// Answers a report under a fence that is not open: it is accepted if it repeats the accepted one, and otherwise
/// conflicts or is too late (R16).
pub(super) fn answer_repeated(
    d: &Draft<'_>,
    run: RunId,
    fence: Fence,
    same: impl Fn(&Answer) -> bool,
) -> Accepted {
    let generation = d.head().generation;
    if run >= d.head().next_run {
        return Err(Rejected::UnknownRun(run));
    }
    if fence.generation() != generation {
        return Err(Rejected::WrongGeneration { given: fence.generation(), current: generation });
    }
    if fence >= d.head().next_fence {
        return Err(Rejected::StaleFence { given: fence });
    }
    match d.given.values.answers.get(&(run, fence)) {
        None => Err(Rejected::Needs(vec![Need::Answer(run, fence)])),
        Some(None) => Err(Rejected::StaleFence { given: fence }),
        Some(Some(answer)) if same(answer) => Ok(()),
        Some(Some(_)) => Err(Rejected::OtherAnswer { given: fence }),
    }
}

fn accept_report(d: &mut Draft<'_>, report: &Report) -> Accepted {
    let id = report.run;
    let details = EndDetails {
        patch: report.patch.clone(),
        times: report.times,
        metadata: report.metadata.clone(),
        cursor: report.cursor.clone(),
        reported: true,
        ..EndDetails::under(report.fence)
    };
    let control_continues = ending::control_continues(d, &d.run(id)?.role);
    if let Some(failure) = super::context::patch_failure(d, &report.patch) {
        let details = EndDetails { patch: Patch::new(), ..details.clone() };
        match (&report.result, control_continues) {
            (WorkResult::Done { output }, _) => {
                return ending::fail(d, id, failure, EndDetails { output: Some(output.clone()), ..details });
            }
            (WorkResult::Failed(_), _) | (WorkResult::Later { .. } | WorkResult::Child { .. }, true) => {
                return ending::fail(d, id, failure, details);
            }
            // Only the fact that it was reported is stored.
            (WorkResult::Stopped, _) | (WorkResult::Later { .. } | WorkResult::Child { .. }, false) => {}
        }
    }
    match (&report.result, control_continues) {
        (WorkResult::Done { output }, true) => ending::succeed(d, id, output.clone(), details),
        (WorkResult::Done { output }, false) => {
            if d.net.step(d.run(id)?.step).completion == Completion::Auto {
                ending::complete(d, id, output.clone(), details)
            } else {
                // No person is asked to confirm any more, so the step-run cannot complete.
                drop_run(d, id, report.fence, Some(report.result.clone()))
            }
        }
        (WorkResult::Failed(failure), true) => retry::fail_attempt(d, id, failure.clone(), details),
        (WorkResult::Failed(failure), false) => ending::fail(d, id, failure.clone(), details),
        (WorkResult::Stopped | WorkResult::Later { .. } | WorkResult::Child { .. }, false) => {
            drop_run(d, id, report.fence, Some(report.result.clone()))
        }
        (WorkResult::Stopped, true) => Err(Rejected::NotWaiting { run: id, why: "no stop was requested" }),
        (WorkResult::Later { delay_ms, cursor }, true) => {
            let until = d.at.plus(*delay_ms);
            d.emit(Event::Yielded {
                run: id,
                fence: report.fence,
                until,
                cursor: cursor.clone(),
                patch: report.patch.clone(),
            })?;
            super::context::examine_gates(d, &report.patch)
        }
        (WorkResult::Child { definition, inputs, cursor }, true) => {
            let (fence, cursor, patch) = (report.fence, cursor.clone(), report.patch.clone());
            let asked = (definition.clone(), inputs.clone());
            children::delegate(d, id, asked, Delegated { fence, cursor, patch })
        }
    }
}

pub(super) fn drop_run(d: &mut Draft<'_>, id: RunId, fence: Fence, reported: Option<WorkResult>) -> Accepted {
    let reported = reported.map(Box::new);
    d.emit(Event::Dropped { run: id, fence: Some(fence), how: Gone::Cancelled, reported })
}
