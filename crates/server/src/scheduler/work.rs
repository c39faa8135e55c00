//! One run: starts its execution, waits for it, and ends the run with it.

use super::held::HeldRun;
use super::outcome::RunEnding;
use super::stored::SpecColumn;
use super::{TROUBLE, store, target};
use crate::app::App;
use crate::auth::{Caller, Credential, Role};
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use crate::routes::executions::key::of_parts;
use crate::routes::executions::{ExecutionOptions, Trigger, begin_version, view_execution};
use axum::http::StatusCode;
use metrics::{counter, histogram};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Request, Start};
use windlass_kernel::net::Recovery;
use windlass_kernel::{Cancel, ExecutionId, Input, Millis};
use windlass_schedule::{ScheduleSpec, Target};
use windlass_store::{
    Applied, Audit, IdempotencyKey, LeaseKey, Origin, Reader as _, RunHolder, RunOutcome, RunResult,
    ScheduleWrite, Schedules as _, StoredRun, StoredSchedule, Which, WorkflowId,
};
use windlass_views::execution_id;

/// Pause before a run is returned for which the engine has no room.
const CROWDED: Duration = Duration::from_secs(1);
/// Pause between attempts to write the end of a run while the engine is overloaded.
const AGAIN: Duration = Duration::from_millis(200);
/// Time that the key of a start is kept after the end of its execution.
const KEY_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// A run that this process works on.
pub(super) struct Work {
    app: Arc<App>,
    run: StoredRun,
    /// None: the run ends with its execution.
    lease: Option<(HeldRun, LeaseKey)>,
}

/// The execution of a run, and the data that is needed to read its result.
struct Started {
    execution: ExecutionId,
    timeout_seconds: u32,
}

impl Work {
    pub(super) fn claimed(app: Arc<App>, run: StoredRun, lease: (HeldRun, LeaseKey)) -> Work {
        Work { app, run, lease: Some(lease) }
    }

    /// Returns the work on a run of an earlier process whose execution still runs.
    pub(super) fn of_execution(app: Arc<App>, run: StoredRun) -> Work {
        Work { app, run, lease: None }
    }

    pub(super) async fn begin(mut self) {
        if let Err(problem) = self.try_begin().await {
            // Its lease expires, and the run is recovered.
            tracing::warn!(run = ids::format_run(self.run.id), %problem, "a run of a schedule is given up");
        }
    }

    pub(super) async fn follow(self) {
        let Some(execution) = self.run.execution else { return };
        while let Err(problem) = self.try_follow(execution).await {
            tracing::warn!(run = ids::format_run(self.run.id), %problem, "cannot follow a run of a schedule; retrying");
            self.sleep(TROUBLE).await;
            if self.app.is_stopping() {
                return;
            }
        }
    }

    async fn try_follow(&self, execution: ExecutionId) -> Result<(), Problem> {
        let timeout_seconds = self.load().await?.1.policy.timeout_seconds;
        self.wait(Started { execution, timeout_seconds }).await
    }

    async fn load(&self) -> Result<(StoredSchedule, ScheduleSpec), Problem> {
        let (tenant, id) = (self.run.tenant.clone(), self.run.schedule);
        let found = self.app.followers.look(move |reader| reader.schedule(&tenant, id)).await?;
        let schedule = found.ok_or_else(|| Problem::not_found("schedule", &ids::format_schedule(id)))?;
        let spec = SpecColumn::read(&schedule)?.spec(&schedule)?;
        Ok((schedule, spec))
    }

    async fn try_begin(&mut self) -> Result<(), Problem> {
        let Some((_, lease_key)) = self.lease else { return Ok(()) };
        let (schedule, spec) = self.load().await?;
        let started = self.start(&schedule, &spec).await;
        let run = self.run.id;
        if let Err(problem) = &started
            && matches!(problem.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
        {
            self.sleep(CROWDED).await;
            store(&self.app, ScheduleWrite::Release { run, lease_key, at: now() }).await?;
            return Ok(());
        }
        let is_workflow = matches!(spec.target, Target::Workflow { .. });
        let execution = started.as_ref().ok().copied();
        let keeps_lease = execution.is_none() || !is_workflow;
        let begin = ScheduleWrite::Begin { run, lease_key, execution, keeps_lease, at: now() };
        if store(&self.app, begin).await? != Applied::Done {
            return Ok(());
        }
        if !keeps_lease {
            // Its place is free for another run.
            self.lease = None;
            self.app.schedule_bell.notify_one();
        }
        let started_after = now().since(self.run.due_time) as f64 / 1_000.0;
        histogram!("windlass_schedule_start_lag_seconds").record(started_after);
        match started {
            Ok(execution) => {
                self.wait(Started { execution, timeout_seconds: spec.policy.timeout_seconds }).await
            }
            Err(problem) => self.finish(None, RunEnding::failed(problem.message)).await,
        }
    }

    /// Starts the execution of the run, or returns the one that was started for it before a crash.
    async fn start(&self, schedule: &StoredSchedule, spec: &ScheduleSpec) -> Result<ExecutionId, Problem> {
        let column = SpecColumn::read(schedule)?;
        let caller = self.caller(column.by.clone());
        let (workflow, version) = match &spec.target {
            Target::Workflow { .. } if let Some(workflow) = schedule.workflow => (workflow, None),
            Target::Workflow { workflow_id, version, .. } => {
                (self.find_workflow(workflow_id, *version).await?, *version)
            }
            Target::Http { .. } | Target::Shell { .. } => {
                let missing = || Problem::internal("the definition of a schedule's target is missing");
                (schedule.definition.ok_or_else(missing)?, None)
            }
        };
        let run = ids::format_run(self.run.id);
        let forgotten = Millis(now().0 - KEY_KEPT_MS);
        let key = IdempotencyKey { request: of_parts([run.as_bytes()]), key: run, forgotten };
        let origin = self.attributed(Trigger::Schedule.origin(&caller, workflow, Some(key)));
        let (start, mut overrides) = ExecutionOptions::default().start(origin, &self.app.settings.egress)?;
        if !matches!(spec.target, Target::Workflow { .. }) {
            // A program whose worker was lost has failed; a retry is another run.
            overrides.recovery = Some(Recovery::FailAttempt);
        }
        let timeout_ms = Some(u64::from(spec.policy.timeout_seconds) * 1_000);
        let start = Start { inputs: Value::Object(target::inputs(&spec.target)), timeout_ms, ..start };
        let begun = begin_version(&self.app, &caller, (workflow, version), start, &overrides).await?;
        Ok(begun.id)
    }

    /// Returns the options with the user who requested the run, in addition to the user of the schedule: neither may
    /// approve their own execution.
    fn attributed(&self, origin: Origin) -> Origin {
        let Some(requester) = &self.run.requested_by else { return origin };
        let options = origin.options.clone().started(requester.clone(), &origin.options);
        Origin { options, ..origin }
    }

    async fn find_workflow(&self, name: &str, version: Option<u32>) -> Result<WorkflowId, Problem> {
        let (tenant, which) = (self.run.tenant.clone(), Which::of(name));
        let found = self.app.followers.look(move |reader| reader.find_definition(&tenant, &which, version));
        let missing = || Problem::bad_request(format!("workflow `{name}` is not registered"));
        Ok(found.await?.ok_or_else(missing)?.workflow)
    }

    fn caller(&self, by: String) -> Caller {
        Caller::in_tenant(self.run.tenant.clone(), Role::Developer, by, Credential::Free)
    }

    /// Waits for the end of the execution and ends the run with it.
    async fn wait(&self, started: Started) -> Result<(), Problem> {
        let follow = self.app.hub.follow(started.execution);
        loop {
            let changed = follow.next();
            let ending = tokio::select! {
                ending = self.await_ending(&started) => ending,
                () = self.app.stopped() => return self.interrupt(&started).await,
            };
            match ending {
                Ok(Some(ending)) => return self.finish(Some(started.execution), ending).await,
                Ok(None) => {}
                Err(problem) => {
                    // The execution continues; only its state cannot be read at the moment.
                    tracing::debug!(run = ids::format_run(self.run.id), %problem, "cannot read an execution; retrying");
                    self.sleep(TROUBLE).await;
                    continue;
                }
            }
            tokio::select! {
                () = changed => {}
                () = self.app.stopped() => return self.interrupt(&started).await,
            }
        }
    }

    async fn await_ending(&self, started: &Started) -> Result<Option<RunEnding>, Problem> {
        self.app.ask(Request::Await(started.execution)).await?;
        self.read_ending(started).await
    }

    async fn read_ending(&self, started: &Started) -> Result<Option<RunEnding>, Problem> {
        let (caller, timeout_seconds) = (self.caller("schedule".to_owned()), started.timeout_seconds);
        let id = execution_id(started.execution);
        let viewed = view_execution(&self.app, &caller, &id, move |loaded| {
            let execution = loaded.response();
            RunEnding::of(execution.status, &json!(execution), timeout_seconds)
        });
        match viewed.await {
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => {
                Ok(Some(RunEnding::failed("the execution was deleted".to_owned())))
            }
            ending => ending,
        }
    }

    /// Cancels the execution of a program, and ends its run, when the server stops. The execution of a workflow continues
    /// after the next start.
    async fn interrupt(&self, started: &Started) -> Result<(), Problem> {
        if self.lease.is_none() {
            return Ok(());
        }
        let run = StoredRun { execution: Some(started.execution), ..self.run.clone() };
        cancel_execution(&self.app, &run, STOPPED, None).await;
        let error_text = Some(STOPPED.to_owned());
        let result = RunResult { error_text, ..RunResult::default() };
        self.finish(Some(started.execution), RunEnding { outcome: RunOutcome::Cancelled, result }).await
    }

    async fn finish(&self, execution: Option<ExecutionId>, ending: RunEnding) -> Result<(), Problem> {
        let holder = match (&self.lease, execution) {
            (Some((_, lease_key)), _) => RunHolder::Lease(*lease_key),
            (None, Some(execution)) => RunHolder::Execution(execution),
            (None, None) => return Ok(()),
        };
        let RunEnding { outcome, result } = ending;
        let finish = || ScheduleWrite::Finish {
            run: self.run.id,
            holder,
            outcome,
            result: Box::new(result.clone()),
            at: now(),
        };
        loop {
            match store(&self.app, finish()).await {
                Ok(_) => break,
                Err(problem) if problem.status() != StatusCode::SERVICE_UNAVAILABLE => return Err(problem),
                Err(problem) if self.app.is_stopping() => return Err(problem),
                Err(_) => self.sleep(AGAIN).await,
            }
        }
        counter!("windlass_schedule_runs_total", "outcome" => outcome.name()).increment(1);
        if outcome == RunOutcome::Failed {
            self.app.notice_bell.notify_one();
        }
        Ok(())
    }

    async fn sleep(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.app.stopped() => {}
        }
    }
}

const STOPPED: &str = "the server was stopped";

/// Cancels the execution of a run. One that has ended meanwhile, or is being cancelled, is left alone.
pub(crate) async fn cancel_execution(app: &App, run: &StoredRun, reason: &str, audit: Option<Box<Audit>>) {
    let Some(execution) = run.execution else { return };
    let cancel =
        Cancel { by: "schedule".to_owned(), reason: reason.to_owned(), force: false, compensate: false };
    let request = Request::Give { execution, input: Input::Cancel(cancel), audit };
    if let Err(problem) = app.ask(request).await {
        tracing::warn!(run = ids::format_run(run.id), %problem, "cannot cancel the execution of a run");
    }
}
