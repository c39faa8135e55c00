//! What steps may do on the machine of the worker, tenant by tenant.

use std::fmt;

/// Asked each time, so that a right that was withdrawn is gone at once.
pub trait Rights: fmt::Debug + Send + Sync + 'static {
    /// Programs run as the user of the worker.
    fn may_run_programs(&self, tenant: &str) -> bool;

    /// A variable of the worker, as a secret.
    fn may_read_variable(&self, tenant: &str, name: &str) -> bool;
}

/// Of a worker whose definitions are all written by whoever started it.
#[derive(Debug, Clone, Copy, Default)]
pub struct EveryRight;

impl Rights for EveryRight {
    fn may_run_programs(&self, _: &str) -> bool {
        true
    }

    fn may_read_variable(&self, _: &str, _: &str) -> bool {
        true
    }
}
