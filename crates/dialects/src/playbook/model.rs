//! A playbook as it was read: every alias and short form resolved, every expression compiled, every name with its place.

use super::keychain::KeyDef;
use super::language::Templates;
pub(super) use crate::read::{Name, Tree};
use crate::source::Written;
use serde_json::{Map, Value};
use std::ops::Range;
use windlass_expr::{Expr, Read, Template};
use windlass_kernel::net::{Admit, EndPolicy, FailureMode, FinalFailure, LoopSpec, RouterMode};
use windlass_protocol::Task;

#[derive(Debug, Default)]
pub(super) struct Playbook {
    pub(super) name: Option<String>,
    pub(super) keychain: Vec<KeyDef>,
    /// Secrets that were written into the keychain.
    pub(super) written: Vec<Written>,
    pub(super) path: Option<String>,
    pub(super) executor: Executor,
    pub(super) workload: Map<String, Value>,
    pub(super) steps: Vec<StepDef>,
    pub(super) workbook: Vec<(Name, TaskDef)>,
}

impl Playbook {
    /// Returns the step that gets the first token.
    pub(super) fn entry(&self) -> Option<&StepDef> {
        let named = self.executor.entry_step.as_ref();
        self.steps.iter().find(|step| named.is_none_or(|name| name.text == step.name.text))
    }
}

#[derive(Debug, Default)]
pub(super) struct Executor {
    pub(super) entry_step: Option<Name>,
    pub(super) final_step: Option<Name>,
    pub(super) no_next_is_error: bool,
    pub(super) failure: FailureMode,
    pub(super) end: EndPolicy,
    pub(super) final_failure: FinalFailure,
    pub(super) complete_with_pending_gates: bool,
    pub(super) templates: Templates,
    /// Policy of steps without one of their own.
    pub(super) timeout_ms: Option<u64>,
    /// Length in bytes above which a value is stored as an artifact.
    pub(super) inline_bytes: Option<usize>,
}

#[derive(Debug)]
pub(super) struct StepDef {
    pub(super) name: Name,
    pub(super) timeout_ms: Option<u64>,
    pub(super) admit: Option<Admit>,
    /// Position of the setting by which the step runs once for all branches.
    pub(super) join_all: Option<Range<usize>>,
    pub(super) args: Tree,
    pub(super) repeat: Option<LoopSpec>,
    pub(super) tasks: Vec<TaskDef>,
    pub(super) set_ctx: Tree,
    /// Length in bytes above which the result is stored as an artifact.
    pub(super) inline_bytes: Option<usize>,
    pub(super) mode: RouterMode,
    pub(super) arcs: Vec<ArcDef>,
}

#[derive(Debug)]
pub(super) struct ArcDef {
    pub(super) to: Name,
    pub(super) guard: Option<Expr>,
    pub(super) args: Option<Template>,
}

impl StepDef {
    /// Returns everything that its expressions read.
    pub(super) fn reads(&self) -> impl Iterator<Item = &Read> {
        let tasks = self.tasks.iter().flat_map(|task| &task.reads);
        let arcs = self.arcs.iter().flat_map(ArcDef::reads);
        tasks.chain(&self.args.reads).chain(&self.set_ctx.reads).chain(arcs)
    }
}

impl ArcDef {
    fn reads(&self) -> impl Iterator<Item = &Read> {
        let guard = self.guard.iter().flat_map(Expr::reads);
        guard.chain(self.args.iter().flat_map(Template::reads))
    }
}

#[derive(Debug, Clone)]
pub(super) struct TaskDef {
    pub(super) task: Task,
    /// Position of a problem with the whole task.
    pub(super) at: Range<usize>,
    /// Reads of the templates of the configuration and of the rules.
    pub(super) reads: Vec<Read>,
    /// Reads of the rules' `set_ctx`, which a noop may evaluate without a worker.
    pub(super) rule_reads: Vec<Read>,
    /// Targets of `jump`, as written.
    pub(super) jumps: Vec<Name>,
    /// Position of its code.
    pub(super) code_at: Option<Range<usize>>,
}
