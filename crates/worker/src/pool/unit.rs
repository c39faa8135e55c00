//! One unit of work: its pipeline, run with real tools and the real clock.

use super::log::{Lines, Pump, log, now_ms};
use crate::failure;
use crate::halt::{Halt, limited};
use crate::keeper;
use crate::keychain::{self, LOCKED};
use crate::node::{Ask, NodeContext, STATE, whole};
use crate::pipeline::{Call as ToolCall, CallResult, Next, Run};
use crate::session::Input;
use crate::tools::{self, Kit, ToolContext};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use windlass_protocol::{
    Call, Failure, NoRoom, Outcome, Progress, Report, Stream, TOO_DEEP, TryTimes, Unit, WORKER_KIND, Work,
    codes, is_too_deep,
};

/// Maximum number of waiting requests of a call; further ones wait.
const ASKS: usize = 16;

pub(crate) type Result = Option<Box<Report>>;

/// Channels from the unit to the pool.
pub(super) struct UnitChannels {
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    /// One message per stored checkpoint.
    pub(super) proceed: mpsc::Receiver<()>,
    pub(super) kit: Arc<Kit>,
    pub(super) grace_ms: u64,
}

/// Runs until the work and its processes have ended. Returns None when it was halted before it had a result.
pub(super) async fn run(work: Work, mut channels: UnitChannels, halt: Halt) -> Result {
    let (unit, timeout_ms) = (work.unit, work.timeout_ms);
    let kit = Arc::clone(&channels.kit);
    let (lines, pump): (Lines, Pump) = log(kit.claim.clone(), Arc::clone(&kit.keeper), &work, halt.clone());
    let mut run = Run::begin(work);
    let (sender, mut asks) = mpsc::channel(ASKS);
    let node = run
        .node()
        .map(|node| NodeContext::new(node.clone(), run.work().clone(), run.ctx(), sender, kit.claim.clone()));
    let mut cx = ToolContext::new(run.work(), lines, Arc::clone(&kit), node);
    let grace_ms = channels.grace_ms;
    let work = async {
        let driven = limited(timeout_ms, grace_ms, halt, |halt| {
            drive(&mut run, &mut cx, &mut asks, &mut channels, unit, halt)
        })
        .await;
        // The log ends when its last sender is dropped.
        drop(cx);
        driven
    };
    let (driven, ()) = tokio::join!(work, pump.run());
    match timeout_ms {
        Some(limit_ms) if driven.timed_out => {
            let failed = failure::timeout(&format!("step `{}`", run.work().step), limit_ms);
            match kit.claim.keep(run.take_unkept()).await {
                Ok(()) => Some(run.report_now(Outcome::Failed(*failed))),
                Err(failure) => Some(without_patch(&run, *failure)),
            }
        }
        _ => driven.result,
    }
}

async fn drive(
    run: &mut Run,
    cx: &mut ToolContext,
    asks: &mut mpsc::Receiver<Ask>,
    channels: &mut UnitChannels,
    unit: Unit,
    mut halt: Halt,
) -> Result {
    if let Err(report) = begin(run, cx, &halt).await {
        return report;
    }
    loop {
        match advance_run(run, cx).await {
            RunNeed::Report(report) => return Some(report),
            RunNeed::Checkpoint(cursor) => store_cursor(cursor, channels, unit, &mut halt).await?,
            RunNeed::Wait { delay_ms } => {
                tokio::select! {
                    () = sleep(Duration::from_millis(delay_ms)) => {}
                    _ = halt.requested() => return None,
                }
            }
            // From here on the group claims the rest, and the slot is free meanwhile.
            RunNeed::Call(call) if call.kind == WORKER_KIND => return Some(run.hand_over(0)),
            RunNeed::Call(call) => {
                announce(run.tasks(), &call, &cx.lines).await;
                let started_ms = now_ms();
                let mut called = called(&call, run, cx, asks, channels, unit, &mut halt).await;
                let ended_ms = now_ms();
                // A call that timed out also counts.
                cx.node.iter().for_each(|node| run.count(node.meter.take()));
                run.note(cx.take_notes());
                if halt.is_requested() {
                    return None;
                }
                bound_depth(&mut called);
                let redactor = cx.kit.keeper.redactor();
                run.redact_with(Arc::clone(&redactor));
                run.note_times(TryTimes { started_ms, ended_ms });
                run.answer(keeper::redact_call(redactor, called).await);
            }
        }
    }
}

/// Opens the secrets that the run needs before its first call; on `Err` the run ends.
pub(crate) async fn begin(
    run: &mut Run,
    cx: &mut ToolContext,
    halt: &Halt,
) -> std::result::Result<(), Result> {
    // Further work of a tenant without storage would only increase its usage. A full disk is not a failure of the step.
    if let Some(no_room @ NoRoom::Quota(_)) = &run.work().no_room {
        return Err(Some(run.report_now(Outcome::Failed(no_room.failure()))));
    }
    if let Some(cursor) = run.work().cursor.clone()
        && let Err(failure) = cx.kit.keeper.open_again(&cursor).await
    {
        return Err(Some(run.report_now(Outcome::Failed(*failure))));
    }
    if let Err(mut failure) = unlock(run, cx, halt).await {
        keeper::redact_failure(&cx.kit.keeper.redactor(), &mut failure);
        return Err((!halt.is_requested()).then(|| locked(run, *failure)));
    }
    Ok(())
}

/// Returns the next need of a run, except values that the engine stores for it.
#[derive(Debug)]
pub(crate) enum RunNeed {
    Checkpoint(Value),
    Wait { delay_ms: u64 },
    Call(Box<ToolCall>),
    Report(Box<Report>),
}

/// Advances a run. Secrets are opened, and large values are loaded and stored.
pub(crate) async fn advance_run(run: &mut Run, cx: &ToolContext) -> RunNeed {
    loop {
        match run.advance() {
            Next::Open(handles) => {
                for handle in handles {
                    let value = cx.open(&handle).await;
                    run.opened(handle, value);
                }
            }
            Next::Load(keys) => match cx.kit.claim.load(keys).await {
                Ok(values) => run.loaded(values),
                Err(failure) => return RunNeed::Report(run.report_now(Outcome::Failed(*failure))),
            },
            Next::Keep(made) => {
                if let Err(failure) = cx.kit.claim.keep(made).await {
                    return RunNeed::Report(without_patch(run, *failure));
                }
            }
            Next::Checkpoint(cursor) => return RunNeed::Checkpoint(cursor),
            Next::Wait { delay_ms } => return RunNeed::Wait { delay_ms },
            Next::Call(call) => return RunNeed::Call(call),
            Next::Report(report) => return RunNeed::Report(report),
        }
    }
}

/// Replaces an outcome that is nested too deep by a failure, because it could not be read from the journal again.
pub(crate) fn bound_depth(called: &mut CallResult) {
    let is_deep = match &called.outcome {
        Ok(result) => is_too_deep(result),
        Err(failure) => is_too_deep(&failure.details),
    };
    if is_deep || called.facts.values().any(is_too_deep) {
        *called = Err(failure::failure(codes::VALUE_TOO_DEEP, TOO_DEEP)).into();
    }
}

/// Runs the call, and serves its requests meanwhile.
async fn called(
    call: &ToolCall,
    run: &mut Run,
    cx: &ToolContext,
    asks: &mut mpsc::Receiver<Ask>,
    channels: &mut UnitChannels,
    unit: Unit,
    halt: &mut Halt,
) -> CallResult {
    let mut calling = std::pin::pin!(tools::call(call, cx, halt.clone()));
    loop {
        tokio::select! {
            biased;
            called = &mut calling => return called,
            Some(ask) = asks.recv() => granted(ask, run, channels, unit, halt).await,
        }
    }
}

/// Serves a request of a call. Without an answer, the call knows that the work was stopped and nothing was stored.
async fn granted(ask: Ask, run: &mut Run, channels: &mut UnitChannels, unit: Unit, halt: &mut Halt) {
    let asked = match ask {
        Ask::SetState { key, mut value, kept } => {
            // A large one is stored as an artifact, which is not redacted later.
            channels.kit.keeper.redactor().value(&mut value);
            run.write(format!("{STATE}{key}"), value);
            kept
        }
        Ask::Remember { memo, kept } => {
            run.remember(memo);
            kept
        }
        Ask::Progress { step, percentage } => {
            let progress =
                Progress { unit, step: channels.kit.keeper.redactor().text(&step).into_owned(), percentage };
            return (channels.kit.claim.port)(Call::Progress(progress), Box::new(|_| ()));
        }
    };
    if channels.kit.claim.keep(run.take_unkept()).await.is_ok()
        && store_cursor(run.cursor(), channels, unit, halt).await.is_some()
    {
        // The call may have been stopped.
        let _ = asked.send(());
    }
}

/// Resolves the keychain, also for a pipeline without tasks and for one that continues at a cursor.
async fn unlock(run: &mut Run, cx: &mut ToolContext, halt: &Halt) -> std::result::Result<(), Box<Failure>> {
    if let Some(why) = run.work().scope.ctx.get(LOCKED).filter(|_| !run.unlocks()) {
        return Err(keychain::locked(why));
    }
    if run.keychain().is_empty() {
        return Ok(());
    }
    let (keys, mut work) = (run.keychain().to_vec(), run.work().clone());
    // Its templates read inputs, which are a reference if they are large.
    if windlass_artifact::key(&work.scope.workload).is_some() {
        work.scope.workload = Arc::new(whole(&cx.kit, &work.scope.workload).await?);
    }
    cx.keychain = keychain::resolve(&keys, &work, cx, halt).await?;
    run.unlock(cx.keychain.clone());
    Ok(())
}

/// Returns the report of a step whose keychain could not be resolved. An arc without a guard is taken after a failure,
/// too, so the later steps read from the context that there is no keychain.
fn locked(run: &Run, failure: Failure) -> Box<Report> {
    let why = json!(failure.message);
    let mut report = run.report_now(Outcome::Failed(failure));
    if run.unlocks() {
        report.patch.insert(LOCKED.to_owned(), why);
    }
    report
}

/// Returns a failure report without the patch, which may refer to values that are not stored.
fn without_patch(run: &Run, failure: Failure) -> Box<Report> {
    Box::new(Report { patch: Map::new(), ..*run.report_now(Outcome::Failed(failure)) })
}

/// Logs the beginning of a call, if the log has the output of several calls.
async fn announce(tasks: usize, call: &ToolCall, lines: &Lines) {
    let ToolCall { label, kind, try_number, .. } = call;
    let said = match (tasks, try_number) {
        (..=1, 1) => return,
        (_, 1) => format!("task {label} ({kind})"),
        (_, number) => format!("task {label} ({kind}), try {number}"),
    };
    lines.send(Stream::Worker, vec![said]).await;
}

/// Waits until the engine has stored the cursor: a worker that takes over must not repeat completed calls.
pub(super) async fn store_cursor(
    mut cursor: Value,
    channels: &mut UnitChannels,
    unit: Unit,
    halt: &mut Halt,
) -> Option<()> {
    // The pool outlives its units.
    keeper::redact_cursor(&channels.kit.keeper, &mut cursor);
    let _ = channels.inputs.send(Input::Reached { unit, cursor: Arc::new(cursor) });
    tokio::select! {
        proceed = channels.proceed.recv() => proceed,
        _ = halt.requested() => None,
    }
}
