//! What engine and worker say to each other: serialised types, without logic.

mod agent;
mod depth;
mod keychain;
mod node;
mod pipeline;
mod tools;
mod work;

pub use agent::{AgentAnswer, AgentAsk, AgentCall};
pub use depth::{TOO_DEEP, TOO_DEEP_CODE, VALUE_DEPTH_MAX, is_too_deep};
pub use keychain::{Key, KeyScope, KeySource, Provider};
pub use node::Node;
pub use pipeline::{Action, Backoff, OnUnmatched, Pipeline, Rule, Task};
pub use tools::{COMMON_FIELDS, Tool, ToolField, ToolRow, field, idle};
pub use windlass_failure::{ErrorClass, Failure};
pub use work::{
    Beat, Checkpoint, ChildEnd, Iter, LEASE_TTL_MS, Level, Line, Log, Order, Outcome, PROTOCOL_VERSION,
    Progress, Register, Report, Returned, Scope, SessionId, Stream, Unit, Verdict, Work,
};
