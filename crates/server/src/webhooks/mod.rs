//! Events of executions, sent to the address that was given with the start: at least once, in order per execution.

pub mod backoff;
pub mod canonical;
pub mod event;
pub mod signature;
