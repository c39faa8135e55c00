//! One firing of a step.

use crate::kept::HeldValue;
use crate::timeline::{FiringRef, is_whole};
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Failure, Millis, Path, Role, RunId, SkipReason, StepId, Times};

#[derive(Debug, Clone)]
pub struct Firing {
    pub run: RunId,
    pub step: StepId,
    pub path: Path,
    pub role: Role,
    pub args: Option<HeldValue>,
    /// Number among the firings of its step, from 1; 0 for an iteration or a hook, which belong to another firing.
    pub number: u32,
    /// Number of attempts that have begun.
    pub attempts: u32,
    /// Number of dispatches: work that waited for a timer or another execution is dispatched again.
    pub(crate) begun: u32,
    pub fired_at: Option<Millis>,
    /// Time at which it was first offered, or began without a worker. An offer that waits for a slot counts: the
    /// journal knows no slots.
    pub began_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    /// None while it has not ended.
    pub end: Option<End>,
    pub output: Option<HeldValue>,
    /// Counters of its worker at its end.
    pub metadata: Option<Arc<Value>>,
    /// The newest execution that it started.
    pub child: Option<ExecutionId>,
    /// The newest failure, whether or not a retry follows.
    pub failure: Option<Failure>,
    pub failed_at: Option<Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed { handled: bool },
    Skipped(Option<SkipReason>),
    Cancelled,
}

impl Firing {
    pub(crate) fn new(firing: &FiringRef) -> Firing {
        let (path, role) = (firing.path.clone(), firing.role.clone());
        Firing { path, role, ..Firing::imported(firing.run, firing.step) }
    }

    /// Returns a firing that was taken over from an earlier execution.
    pub(crate) fn imported(run: RunId, step: StepId) -> Firing {
        Firing {
            run,
            step,
            path: Path::default(),
            role: Role::Routed,
            args: None,
            number: 0,
            attempts: 0,
            begun: 0,
            fired_at: None,
            began_at: None,
            ended_at: None,
            end: None,
            output: None,
            metadata: None,
            child: None,
            failure: None,
            failed_at: None,
        }
    }

    pub(crate) fn begin(&mut self, attempt: u32, at: Millis) {
        self.attempts = attempt;
        self.begun += 1;
        self.began_at.get_or_insert(at);
    }

    pub(crate) fn fail(&mut self, failure: &Failure, at: Millis) {
        self.failure = Some(failure.clone());
        self.failed_at = Some(at);
    }

    pub(crate) fn end(&mut self, end: End, at: Millis, times: Option<&Times>) {
        // The lease has a more precise begin of the work than the offer; it has the newest begin only.
        if let Some(times) = times
            && self.begun == 1
        {
            self.began_at = Some(times.started_at);
        }
        if end == End::Completed {
            self.failure = None;
        }
        self.end = Some(end);
        self.ended_at = Some(at);
    }

    /// Returns the start of the firing. Pure work begins when it is fired.
    #[must_use]
    pub fn started_at(&self) -> Option<Millis> {
        let pure = matches!(self.end, Some(End::Completed | End::Failed { .. }));
        self.began_at.or(self.fired_at.filter(|_| pure))
    }

    #[must_use]
    pub fn duration_ms(&self) -> Option<u64> {
        Some(self.ended_at?.since(self.started_at()?))
    }

    /// Returns whether it is a firing of its own, and not a part of another one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        is_whole(&self.role)
    }
}
