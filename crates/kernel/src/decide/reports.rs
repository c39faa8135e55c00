//! Reports of workers. Only a report under the open fence has an effect; a repeated report is accepted again.

use super::ending::{self, Told};
use super::{Draft, children, retry};
use crate::event::{Delegated, Event, Gone};
use crate::ids::{Fence, RunId};
use crate::input::{Answer, Need, Rejected, Report, WorkResult};
use crate::net::Completion;
use crate::step_run::{Patch, RunState};

pub(super) fn report(d: &mut Draft<'_>, report: &Report) -> Result<(), Rejected> {
    let open = d
        .state
        .run(report.run)
        .is_some_and(|run| matches!(run.state, RunState::Offered { fence } if fence == report.fence));
    if open {
        return accept(d, report);
    }
    let said = report.as_kept(d.net.policy().limits.inline_bytes);
    let same = |answer: &Answer| match answer {
        Answer::Report { result, patch } => {
            *result == said.result && patch.as_ref().is_none_or(|patch| *patch == said.patch)
        }
        Answer::Manual(_) | Answer::Child => false,
    };
    repeated(d, report.run, report.fence, same)
}

/// Answers a report under a fence that is not open: it is accepted if it repeats the accepted one, and otherwise
/// conflicts or is too late (R16).
pub(super) fn repeated(
    d: &Draft<'_>,
    run: RunId,
    fence: Fence,
    same: impl Fn(&Answer) -> bool,
) -> Result<(), Rejected> {
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

fn accept(d: &mut Draft<'_>, report: &Report) -> Result<(), Rejected> {
    let id = report.run;
    let told = Told {
        patch: report.patch.clone(),
        times: report.times,
        metadata: report.metadata.clone(),
        cursor: report.cursor.clone(),
        reported: true,
        ..Told::under(report.fence)
    };
    let leads_on = ending::leads_on(d, &d.run(id)?.role);
    if let Some(failure) = super::context::refused(d, &report.patch) {
        let told = Told { patch: Patch::new(), ..told.clone() };
        match (&report.result, leads_on) {
            (WorkResult::Done { output }, _) => {
                return ending::fail(d, id, failure, Told { output: Some(output.clone()), ..told });
            }
            (WorkResult::Failed(_), _) | (WorkResult::Later { .. } | WorkResult::Child { .. }, true) => {
                return ending::fail(d, id, failure, told);
            }
            // Only the fact that it was reported is stored.
            (WorkResult::Stopped, _) | (WorkResult::Later { .. } | WorkResult::Child { .. }, false) => {}
        }
    }
    match (&report.result, leads_on) {
        (WorkResult::Done { output }, true) => ending::succeed(d, id, output.clone(), told),
        (WorkResult::Done { output }, false) => {
            if d.net.step(d.run(id)?.step).completion == Completion::Auto {
                ending::complete(d, id, output.clone(), told)
            } else {
                // No person is asked to confirm any more, so the step-run cannot complete.
                drop_it(d, id, report.fence, Some(report.result.clone()))
            }
        }
        (WorkResult::Failed(failure), true) => retry::attempt_failed(d, id, failure.clone(), told),
        (WorkResult::Failed(failure), false) => ending::fail(d, id, failure.clone(), told),
        (WorkResult::Stopped | WorkResult::Later { .. } | WorkResult::Child { .. }, false) => {
            drop_it(d, id, report.fence, Some(report.result.clone()))
        }
        (WorkResult::Stopped, true) => Err(Rejected::NotWaiting { run: id, why: "nobody asked it to stop" }),
        (WorkResult::Later { delay_ms, cursor }, true) => {
            let until = d.at.plus(*delay_ms);
            d.emit(Event::Yielded {
                run: id,
                fence: report.fence,
                until,
                cursor: cursor.clone(),
                patch: report.patch.clone(),
            })?;
            super::context::reexamine(d, &report.patch)
        }
        (WorkResult::Child { definition, inputs, cursor }, true) => {
            let (fence, cursor, patch) = (report.fence, cursor.clone(), report.patch.clone());
            let asked = (definition.clone(), inputs.clone());
            children::delegate(d, id, asked, Delegated { fence, cursor, patch })
        }
    }
}

pub(super) fn drop_it(
    d: &mut Draft<'_>,
    id: RunId,
    fence: Fence,
    reported: Option<WorkResult>,
) -> Result<(), Rejected> {
    let reported = reported.map(Box::new);
    d.emit(Event::Dropped { run: id, fence: Some(fence), how: Gone::Cancelled, reported })
}
