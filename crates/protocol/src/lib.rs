//! What engine and worker say to each other: serialised types, without logic.

mod pipeline;

pub use pipeline::{Action, Backoff, OnUnmatched, Pipeline, Rule, Task};
