//! One step-run in the oracle's model.

use crate::seen::{Firing, Of};

/// A step-run's place in `World::runs`.
pub(super) type RunId = usize;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) step: usize,
    pub(super) path: Vec<u32>,
    pub(super) of: Kind,
    pub(super) arg: Option<i64>,
    /// Known once it was seen.
    pub(super) firing: Option<Firing>,
    /// Lower bound of its firing number: these were seen before its token was enabled.
    pub(super) above: Firing,
    pub(super) state: State,
    pub(super) attempt: u32,
    /// Leases lost after the work had started.
    pub(super) losses: u32,
    pub(super) routed: bool,
    /// Something of it was seen, or it ran inside the engine.
    pub(super) began: bool,
    /// It was created in this input after an instant step, so its position among the others is recorded nowhere.
    pub(super) fresh: bool,
    /// Offered again after a lost lease; it may keep its slot.
    pub(super) again: bool,
    /// Report of the worker while a person confirms it.
    pub(super) n: Option<i64>,
    /// Children whose time was up and whose end may still arrive.
    pub(super) strays: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Step,
    Iteration {
        of: RunId,
    },
    Final,
    Hook {
        undoes: RunId,
    },
    /// An agent asked for it.
    Tool {
        of: RunId,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// The token of the step-run waits at a closed gate.
    Gate {
        due: Option<i64>,
    },
    /// It may begin.
    Ready,
    Route {
        due: i64,
    },
    Offered {
        fence: u64,
    },
    Backoff {
        until: i64,
    },
    Delay {
        due: i64,
    },
    Child {
        due: Option<i64>,
    },
    /// The work is done and the person is not asked yet.
    Confirm,
    Person {
        due: Option<i64>,
    },
    Loop(Laps),
    Ended(End),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Laps {
    pub(super) next: u32,
    pub(super) open: u32,
    pub(super) failed: bool,
    /// Writes of iterations to the context.
    pub(super) wrote: Vec<(usize, bool)>,
    /// Bodies: per open iteration how many steps are settled and whether one failed.
    pub(super) bodies: Vec<(u32, usize, bool)>,
}

/// End of a step-run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done(Option<i64>),
    Failed,
    Skipped,
    /// Cancelled, drained or lost with its generation.
    Gone,
}

impl Run {
    pub(super) fn new(step: usize, path: Vec<u32>, of: Kind, arg: Option<i64>, above: Firing) -> Run {
        Run {
            step,
            path,
            of,
            arg,
            firing: None,
            above,
            state: State::Ready,
            attempt: 1,
            losses: 0,
            routed: false,
            began: false,
            fresh: false,
            again: false,
            n: None,
            strays: 0,
        }
    }

    pub(super) fn lives(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    /// Holds a slot.
    pub(super) fn in_flight(&self) -> bool {
        matches!(self.state, State::Offered { .. } | State::Child { .. })
    }

    pub(super) fn is(&self, of: Of) -> bool {
        match (self.of, of) {
            (Kind::Step, Of::Step) | (Kind::Iteration { .. }, Of::Iteration) | (Kind::Final, Of::Final) => {
                true
            }
            (Kind::Hook { .. }, Of::Hook { .. }) | (Kind::Tool { .. }, Of::Tool) => true,
            (
                Kind::Step | Kind::Iteration { .. } | Kind::Final | Kind::Hook { .. } | Kind::Tool { .. },
                _,
            ) => false,
        }
    }

    pub(super) fn describe(&self) -> String {
        let Run { step, path, firing, attempt, state, .. } = self;
        format!("step {step} path {path:?} firing {firing:?} attempt {attempt} ({state:?})")
    }
}
