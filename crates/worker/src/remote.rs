//! Calls of workers outside of this process. All other parts of a pipeline run here: templates and secrets before the
//! call; redaction, size, rules and retries after it. A unit of such a worker is one call of one task.
//!
//! No state is kept between the claim and the report: a unit that is prepared again, also by another process, makes the
//! same call.

use crate::claim::Claim;
use crate::command::OwnCommand;
use crate::egress::Egress;
use crate::excerpt;
use crate::failure;
use crate::footprint::estimate;
use crate::halt::halt;
use crate::keeper;
use crate::kits::Kits;
use crate::pipeline::{Call as ToolCall, CallResult, Run};
use crate::pool::{Port, RunNeed, advance_run, begin, bound_depth, log};
use crate::tools::{Clients, ToolContext, limit_ms};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env::temp_dir;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_protocol::{Failure, Outcome, Report, Unit, WORKER_KIND, Work, WorkerRules};

/// Maximum bytes of a message, as for a local tool.
const MESSAGE_MAX: usize = 4 * 1024;

/// Settings of remote calls.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Command that calls [`crate::supervisor::run`].
    pub supervisor: OwnCommand,
    /// Command that calls [`crate::sandbox::run`].
    pub sandbox: OwnCommand,
    pub rules: Arc<WorkerRules>,
}

/// Prepares the calls of remote workers.
pub struct CallPreparer {
    kits: Mutex<Kits>,
    port: Port,
}

/// A unit after its preparation.
#[derive(Debug)]
pub enum Prepared {
    Call(Box<RemoteUnit>),
    /// The unit ended before its call: a template failed, a secret is missing, or the next task runs on the server.
    Ended(Box<Report>),
}

/// A unit whose call is ready.
#[derive(Debug)]
pub struct RemoteUnit {
    run: Run,
    cx: ToolContext,
    call: ToolCall,
}

/// The call of a unit, in the form for its worker.
#[derive(Debug)]
pub struct RemoteCall<'u> {
    pub step: &'u str,
    pub operation: &'u str,
    pub input: &'u Value,
    pub idempotency_key: &'u str,
    /// Number of the attempt, from 1, over all tries of the task and lost workers.
    pub attempt: u32,
    /// Time limit of the whole attempt of the step.
    pub attempt_ms: Option<u64>,
    /// Time limit of this call.
    pub call_ms: Option<u64>,
}

impl std::fmt::Debug for CallPreparer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallPreparer")
    }
}

impl CallPreparer {
    #[must_use]
    pub fn new(config: RemoteConfig, port: Port) -> CallPreparer {
        let kits = Kits {
            supervisor: config.supervisor,
            sandbox: config.sandbox,
            clients: Arc::new(Clients::new(Egress::of(&config.rules.egress))),
            helper: None,
            folders: temp_dir(),
            keeps_workdirs: false,
            databases: None,
            rules: config.rules,
            cache: temp_dir(),
            venvs: Arc::default(),
            tokens: BTreeMap::new(),
            bounds: BTreeMap::new(),
        };
        CallPreparer { kits: Mutex::new(kits), port }
    }

    /// Renders the call of a unit. The engine serves secrets and large values while the unit is leased.
    pub async fn prepare(&self, work: Work) -> Prepared {
        let claim = Claim { unit: work.unit, port: Arc::clone(&self.port) };
        let kit =
            self.kits.lock().unwrap_or_else(PoisonError::into_inner).for_unit(&work.tenant, claim, None);
        let (_puller, halt) = halt();
        // The log is not read, because the output of a remote worker stays with that worker.
        let (lines, _) = log(kit.claim.clone(), Arc::clone(&kit.keeper), &work, halt.clone());
        let mut run = Run::begin(work);
        let mut cx = ToolContext::new(run.work(), lines, kit, None);
        let report = match begin(&mut run, &mut cx, &halt).await {
            Err(report) => report.unwrap_or_else(|| run.report_now(Outcome::Stopped)),
            Ok(()) => loop {
                match advance_run(&mut run, &cx).await {
                    RunNeed::Checkpoint(_) => {}
                    RunNeed::Call(call) if call.kind == WORKER_KIND => {
                        return Prepared::Call(Box::new(RemoteUnit { run, cx, call: *call }));
                    }
                    RunNeed::Call(_) => break run.hand_over(0),
                    RunNeed::Wait { delay_ms } => break run.hand_over(delay_ms),
                    RunNeed::Report(report) => break report,
                }
            },
        };
        Prepared::Ended(redacted(&cx, report))
    }
}

impl RemoteUnit {
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.run.work().unit
    }

    #[must_use]
    pub fn call(&self) -> RemoteCall<'_> {
        let work = self.run.work();
        let operation = self.call.config.get("operation").and_then(Value::as_str);
        RemoteCall {
            step: &work.step,
            operation: operation.unwrap_or(WORKER_KIND),
            input: &self.call.args,
            idempotency_key: self.cx.key(),
            attempt: work.attempt.saturating_sub(1) + work.losses + self.call.try_number,
            attempt_ms: work.timeout_ms,
            call_ms: limit_ms(&self.call).ok().flatten(),
        }
    }

    /// Returns the memory that its values take, estimated.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let values = (self.run.work(), &self.call.config, &self.call.args);
        // A value that cannot be measured counts as too large.
        let own = serde_json::to_vec(&values).ok().and_then(|json| estimate(&json).ok());
        own.unwrap_or(u64::MAX).saturating_add(self.run.loaded_memory())
    }

    /// Continues the pipeline with the worker's result, and returns the report for the engine.
    pub async fn finish(mut self, outcome: Result<Value, Box<Failure>>) -> Box<Report> {
        let mut called = CallResult::from(outcome.map_err(bounded));
        bound_depth(&mut called);
        let redactor = self.cx.kit.keeper.redactor();
        self.run.redact_with(Arc::clone(&redactor));
        self.run.answer(keeper::redact_call(redactor, called).await);
        let report = loop {
            match advance_run(&mut self.run, &self.cx).await {
                // The next offer, or the end of this one, has the cursor.
                RunNeed::Checkpoint(_) => {}
                RunNeed::Wait { delay_ms } => break self.run.hand_over(delay_ms),
                RunNeed::Call(_) => break self.run.hand_over(0),
                RunNeed::Report(report) => break report,
            }
        };
        redacted(&self.cx, report)
    }

    /// Ends the call because its worker exceeded the time limit.
    pub async fn time_out(self, limit_ms: u64) -> Box<Report> {
        let failed = failure::timeout(&format!("task `{}`", self.call.label), limit_ms);
        self.finish(Err(failed)).await
    }
}

/// Truncates the message of a worker's failure: executions have it in memory and in their rows.
fn bounded(mut failure: Box<Failure>) -> Box<Failure> {
    failure.message = excerpt::head(&failure.message, MESSAGE_MAX);
    failure
}

/// Redacts a report. Every report passes through here, so that no value of a secret leaves with it.
fn redacted(cx: &ToolContext, mut report: Box<Report>) -> Box<Report> {
    keeper::redact_report(&cx.kit.keeper, &mut report);
    report
}
