//! A scenario: a definition in the simulator's own plain terms. The world lowers it to a Net; the oracle
//! reads it directly and shares nothing with the kernel.

/// Steps are numbered by their place in `steps`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    pub dialect: Dialect,
    pub steps: Vec<Step>,
    pub failure: Failure,
    /// The end after unhandled failures is partial, not failed, if a step ended well.
    pub partial: bool,
    pub final_step: Option<usize>,
    /// A failing final step makes the end partial instead of failed.
    pub final_partial: bool,
    pub final_on_cancel: bool,
    pub no_next_is_error: bool,
    pub max_parallel: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub recovery: Recovery,
    /// Uploads are awaited after the last step (plans).
    pub uploads: bool,
    /// A closed gate does not keep the execution alive.
    pub gates_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Join `all`; one worker has the whole execution; a lost worker restarts it.
    Plan,
    /// Join `each`; the first step is the entry; arcs may form cycles.
    Playbook,
    /// Join `any_live`; loops have bodies.
    Workflow,
    /// Join `all`; fail-fast with compensation.
    Actions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    FailFast,
    Continue,
    Collect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    ResumeStep,
    RestartExecution,
    FailAttempt,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub work: Work,
    pub order: u32,
    pub arcs: Vec<Arc>,
    /// First matching arc only (else every matching one).
    pub exclusive: bool,
    /// Exists to choose among its arcs; if it fails nothing can be chosen.
    pub conditional: bool,
    pub gate: Option<Gate>,
    /// False skips the step.
    pub condition: Option<When>,
    /// Milliseconds it waits for its route at most.
    pub route_ms: Option<u64>,
    pub repeat: Option<Loop>,
    pub retry: Retry,
    pub timeout_ms: Option<u64>,
    /// Confirmation by a person after the work.
    pub manual: Option<Manual>,
    pub hook: Option<Retry>,
    /// The loop step whose body this step is in.
    pub region: Option<usize>,
    pub trigger: bool,
    /// The worker of the step may call tools while it runs.
    pub agent: bool,
    /// Fired by an agent only: it has no arcs and is no entry.
    pub tool: bool,
    /// Fires once for all tokens that can reach it (playbooks).
    pub join: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    Task,
    /// Needs no worker; sets a context flag when it has one.
    Noop {
        sets: Option<(usize, bool)>,
    },
    Approval(Manual),
    Delay {
        ms: u64,
    },
    Child,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual {
    pub deadline_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Arc {
    pub to: usize,
    pub when: When,
    /// Bound to the token as `args.a`.
    pub args: Option<i64>,
    /// The arc begins at an error handle.
    pub on_error: bool,
}

/// Guards, conditions and gates. Context flags are `ctx.k0` … and start undefined, which is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// Reads the event; true when the step ended well.
    Done,
    /// Reads the event; true when the step failed.
    Failed,
    /// Reads the event; true however the step ended.
    Ended,
    /// Reads the event; true when the step ended well with `n` at least this. False for loops and failures.
    AtLeast(i64),
    /// Flag `k{0}` is set.
    Flag(usize),
    /// The step's own `args.a` is at least this; false without args.
    ArgAtLeast(i64),
    Never,
    /// Cannot be evaluated.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Opens when the flag is set.
    pub flag: usize,
    pub discard: bool,
    pub deadline_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    pub kind: LoopKind,
    pub cap: u32,
    /// The body is every step whose `region` is this one (else the step's own work).
    pub body: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    ForEach(u32),
    Count(u32),
    /// While the flag is NOT set; checked first; at most `max` iterations, wanting more fails the step.
    Until {
        flag: usize,
        max: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// All tries.
    pub attempts: u32,
    pub backoff: Backoff,
    pub initial_ms: u64,
    pub multiplier: f64,
    pub max_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    Fixed,
    Linear,
    Exponential,
}
