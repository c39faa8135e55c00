//! Compensation of an execution, folded from its journal: an entry for every completed step that has a side effect, in the
//! order in which compensation undoes them.

use crate::evidence::Classified;
use crate::timeline::{ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{Args, Failure, Net, Outcome, Path, Role, RunId, StepId, any_of};
use windlass_protocol::Pipeline;

/// Summary of the compensation of an execution. All counts are 0 while nothing has to be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compensation {
    /// Hooks that began.
    pub attempted: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// Completed actions that have side effects and no hook.
    pub non_compensable: usize,
    /// Newest completion first, which is the order of the hooks.
    pub entries: Vec<CompensationEntry>,
}

/// Compensation of one completed action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompensationEntry {
    pub action_id: String,
    /// Null without a hook.
    pub operation: Option<String>,
    /// The same on every attempt. Null before the hook begins.
    pub idempotency_key: Option<String>,
    pub attempts: u32,
    pub outcome: CompensationOutcome,
    /// The newest error of the hook.
    pub error: Option<Classified>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum CompensationOutcome {
    /// The hook waits for the hooks of actions that completed later.
    Pending,
    Running,
    Succeeded,
    Failed,
    /// A forced cancel stopped the hook while it ran.
    Cancelled,
    /// A forced cancel came before the hook began.
    NotRun,
    /// The action has no hook.
    NonCompensable,
}

/// Fold of the journal. It is empty for nets that do not compensate.
#[derive(Debug, Clone, Default)]
pub struct CompensationFold {
    completed: BTreeMap<RunId, CompletedAction>,
    /// Whether the outcome is decided, and completed actions are undone.
    is_wanted: bool,
}

/// A completed firing with a side effect.
#[derive(Debug, Clone)]
pub(crate) struct CompletedAction {
    pub(crate) step: StepId,
    pub(crate) path: Path,
    /// Number of such firings that completed before it.
    order: usize,
    pub(crate) key: Option<String>,
    attempts: u32,
    pub(crate) outcome: CompensationOutcome,
    error: Option<Box<Failure>>,
}

impl CompensationFold {
    /// Folds the next record of the journal.
    pub fn note(&mut self, net: &Net, entry: &TimelineEntry) {
        if !net.policy().compensate {
            return;
        }
        match &entry.occurrence {
            Occurrence::Execution(change) => self.note_execution(change),
            Occurrence::Firing(firing, change) => match firing.role {
                Role::Hook { of } => self.note_hook(of, firing, change),
                Role::Routed | Role::Final | Role::Tool { .. } => self.note_firing(net, firing, change),
                Role::Iteration { .. } => {}
            },
            Occurrence::Cleared { dropped, .. } => {
                for (firing, _) in dropped {
                    self.stop(firing);
                }
            }
            Occurrence::Token(_) => {}
        }
    }

    /// Returns the summary. It has entries after the outcome was decided, if that outcome is compensated.
    #[must_use]
    pub fn summary(&self, net: &Net) -> Compensation {
        let mut actions: Vec<&CompletedAction> = self.listed().collect();
        actions.sort_by_key(|action| Reverse(action.order));
        let count = |outcome| actions.iter().filter(|action| action.outcome == outcome).count();
        Compensation {
            attempted: actions.iter().filter(|action| action.key.is_some()).count(),
            succeeded: count(CompensationOutcome::Succeeded),
            failed: count(CompensationOutcome::Failed),
            non_compensable: count(CompensationOutcome::NonCompensable),
            entries: actions.into_iter().map(|action| action.entry(net)).collect(),
        }
    }

    /// Returns a completed action that has to be undone, or cannot be.
    pub(crate) fn action(&self, run: RunId) -> Option<&CompletedAction> {
        self.completed.get(&run)
    }

    /// Lists the completed actions that no hook undoes.
    pub(crate) fn non_compensable(&self) -> impl Iterator<Item = &CompletedAction> {
        self.listed().filter(|action| action.outcome == CompensationOutcome::NonCompensable)
    }

    fn listed(&self) -> impl Iterator<Item = &CompletedAction> {
        self.completed.values().filter(|_| self.is_wanted)
    }

    fn note_execution(&mut self, change: &ExecutionChange) {
        match change {
            ExecutionChange::Draining { outcome, compensate, .. } => {
                self.is_wanted = *compensate && matches!(outcome, Outcome::Failed | Outcome::Cancelled);
            }
            ExecutionChange::NotCompensated { runs } => {
                for run in runs {
                    self.change(*run, |action| action.outcome = CompensationOutcome::NotRun);
                }
            }
            ExecutionChange::Restarted { .. } => *self = CompensationFold::default(),
            any_of![ExecutionChange: Created Forked Started Held Released Paused Resumed Compensating
                Finalizing Ended Patched Bookkeeping] => {}
        }
    }

    fn note_firing(&mut self, net: &Net, firing: &FiringRef, change: &FiringChange) {
        let step = net.step(firing.step);
        let outcome = match (&step.compensation, step.side_effecting) {
            (Some(_), _) => CompensationOutcome::Pending,
            (None, true) => CompensationOutcome::NonCompensable,
            (None, false) => return,
        };
        if matches!(change, FiringChange::Done { .. }) {
            let (order, path) = (self.completed.len(), firing.path.clone());
            let (key, attempts, error) = (None, 0, None);
            let action = CompletedAction { step: firing.step, path, order, key, attempts, outcome, error };
            self.completed.insert(firing.run, action);
        }
    }

    fn note_hook(&mut self, of: RunId, firing: &FiringRef, change: &FiringChange) {
        match change {
            FiringChange::Fired { args } => self.change(of, |action| {
                action.key = Some(key_of(args));
                action.outcome = CompensationOutcome::Running;
            }),
            FiringChange::Offered { attempt } | FiringChange::ChildStarted { attempt, .. } => {
                self.change(of, |action| action.attempts = *attempt);
            }
            FiringChange::RetryScheduled { failure, .. } => {
                self.change(of, |action| action.error = Some(failure.clone()));
            }
            FiringChange::Done { .. } => self.change(of, |action| {
                action.outcome = CompensationOutcome::Succeeded;
                action.error = None;
            }),
            FiringChange::Failed { failure, .. } => self.change(of, |action| {
                action.outcome = CompensationOutcome::Failed;
                action.error = Some(failure.clone());
            }),
            FiringChange::Dropped(_) => self.stop(firing),
            any_of![FiringChange: Skipped Waiting Woken Delayed Lost Yielded AwaitingManual Noted CompletedManually
                LoopStarted IterationStarted IterationEnded ChildPaused ChildReturned AgentDecided
                Routed] => {}
        }
    }

    fn stop(&mut self, firing: &FiringRef) {
        if let Role::Hook { of } = firing.role {
            self.change(of, |action| action.outcome = CompensationOutcome::Cancelled);
        }
    }

    fn change(&mut self, run: RunId, change: impl FnOnce(&mut CompletedAction)) {
        if let Some(action) = self.completed.get_mut(&run) {
            change(action);
        }
    }
}

impl CompletedAction {
    fn entry(&self, net: &Net) -> CompensationEntry {
        let step = net.step(self.step);
        CompensationEntry {
            action_id: step.name.clone(),
            operation: hook_operation(step),
            idempotency_key: self.key.clone(),
            attempts: self.attempts,
            outcome: self.outcome,
            error: self.error.as_deref().map(Classified::of),
        }
    }
}

/// Returns the key that the arguments of a hook carry.
fn key_of(args: &Args) -> String {
    let key = args.as_ref().and_then(|args| args.get("idempotencyKey")?.as_str());
    key.unwrap_or_default().to_owned()
}

/// Returns the operation of a step's hook.
#[must_use]
pub fn hook_operation(step: &Step) -> Option<String> {
    operation_of(&step.compensation.as_ref()?.work)
}

/// Returns the label of the task, which stays when an adapter replaces the kind.
fn operation_of(work: &Work) -> Option<String> {
    let Work::Task { spec } = work else { return None };
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).ok()?;
    pipeline.tasks.into_iter().next().map(|task| task.label)
}
