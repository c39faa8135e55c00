//! What engine and worker say to each other: serialised types, without logic.

mod keychain;
mod pipeline;
mod work;

pub use keychain::{Key, KeyScope, KeySource, Provider};
pub use pipeline::{Action, Backoff, OnUnmatched, Pipeline, Rule, Task};
pub use work::{
    Beat, Checkpoint, ChildEnd, Failure, Iter, LEASE_TTL_MS, Line, Log, Order, Outcome, PROTOCOL_VERSION,
    Register, Report, Returned, Scope, SessionId, Stream, Unit, Verdict, Work,
};
