//! Observations of an execution from outside, in order. The oracle gets nothing else.

/// One observation and its time in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub at: i64,
    pub what: What,
}

/// A firing: one step-run, by its public number. It rises and is never used again.
pub type Firing = u64;

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The execution was accepted; it starts at once, or (plans) when a worker takes it.
    Created,
    /// Plans only: a worker took it / the worker has prepared it. Refused ones change nothing.
    Assigned {
        accepted: bool,
    },
    Begun {
        accepted: bool,
    },

    /// A request of a user, and whether it was accepted.
    Asked {
        ask: Ask,
        accepted: bool,
    },

    /// A worker may have this firing now. `of` says what it is.
    Dispatched {
        firing: Firing,
        step: usize,
        path: Vec<u32>,
        of: Of,
        attempt: u32,
        fence: u64,
        arg: Option<i64>,
    },
    /// A worker's answer arrived, possibly late, repeated or under a fence that is over. A repeated answer with
    /// equal content is accepted and must change nothing.
    Reported {
        firing: Firing,
        fence: u64,
        result: Reply,
        sets: Option<(usize, bool)>,
        accepted: bool,
    },
    /// The lease of a firing ended without an answer.
    Lost {
        firing: Firing,
        fence: u64,
        started: bool,
        accepted: bool,
    },
    /// Plans: the worker that had the whole execution is gone. `generation` counts from 1.
    LostWhole {
        generation: u32,
        accepted: bool,
    },
    /// The attempt's time is up (reported by the keeper of the lease, not before its time).
    AttemptTimedOut {
        firing: Firing,
        fence: u64,
        accepted: bool,
    },
    /// Work under way is no longer wanted.
    StopAsked {
        firings: Vec<Firing>,
    },

    /// A firing of a step that is no task: it waits for a person, a route, a time or a child.
    Opened {
        firing: Firing,
        step: usize,
        path: Vec<u32>,
        of: Of,
        what: Waits,
        arg: Option<i64>,
    },
    /// The child of a firing ended.
    ChildEnded {
        firing: Firing,
        result: Reply,
        accepted: bool,
    },
    /// A timer was delivered. It is never delivered before it is due; refused ones change nothing.
    Rang {
        timer: Bell,
        accepted: bool,
    },
    /// Plans: uploads are over.
    Uploaded {
        failed: bool,
        accepted: bool,
    },
    /// Everything begins again from scratch.
    Restarted {
        generation: u32,
    },

    /// The status as the user sees it; reported when it changes. Several may follow each other for one input.
    Status(Status),
    /// The engine has finished with the last input (and everything it led to): nothing more will happen
    /// before the next observation from outside.
    Settled,
    /// The world is over: every worker has answered or died, every timer rang.
    Over,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Hold,
    Resume,
    Cancel {
        force: bool,
        compensate: bool,
    },
    Patch {
        flag: usize,
        value: bool,
    },
    /// A person ends a manual step. `open` is whether the given token is that of the open request.
    Complete {
        firing: Firing,
        outcome: Verdict,
        open: bool,
        repeated: bool,
    },
    RouteReady {
        firing: Firing,
    },
    /// The worker of an agent asks, under its fence. A call that was accepted before is accepted again and must
    /// change nothing.
    Agent {
        firing: Firing,
        fence: u64,
        call: u32,
        wish: Wish,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Execute {
        step: usize,
        arg: Option<i64>,
    },
    /// Rules the tool out for good.
    Skip {
        step: usize,
    },
    Pause,
    /// Fails the whole execution.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Done {
        n: i64,
    },
    /// The class of the failure: always retryable, never retryable, or unknown (retried by actions only).
    Failed(Class),
    Stopped,
    /// The pipeline releases its slot for this time and then continues. No attempt is used up.
    Later {
        ms: u64,
    },
    /// Children only.
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Transient,
    Permanent,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Step,
    /// Iteration of the loop's firing (own work; bodies have a path but are steps).
    Iteration,
    Final,
    /// An agent asked for it; its path is empty, its end is routed nowhere and fails nothing.
    Tool,
    /// Undoes the completed firing.
    Hook {
        of: Firing,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    Person,
    Route,
    Delay,
    Child,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    Deadline,
    Backoff {
        firing: Firing,
    },
    Delay {
        firing: Firing,
    },
    Route {
        firing: Firing,
    },
    Person {
        firing: Firing,
    },
    /// One gate of this step.
    Gate {
        step: usize,
    },
    /// A child's own time is up (steps with `timeout_ms`).
    Child {
        firing: Firing,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Queued,
    Starting,
    Running,
    Paused,
    /// The outcome is decided, work is still under way.
    Draining,
    Compensating,
    Finalizing,
    Completed,
    Partial,
    Failed,
    Cancelled,
}
