//! Whose an execution is, and what was asked for beside its inputs.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use windlass_kernel::Millis;

/// A tenant by its id: `default`, or `tnt_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(pub Arc<str>);

impl Tenant {
    #[must_use]
    pub fn new(id: &str) -> Tenant {
        Tenant(id.into())
    }
}

/// The tenant of whoever works on a data folder without a server.
impl Default for Tenant {
    fn default() -> Self {
        Tenant::new("default")
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which of a tenant's offers go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Critical = 0,
    High = 1,
    #[default]
    Normal = 2,
    Low = 3,
}

impl Priority {
    pub const ALL: [Priority; 4] = [Priority::Critical, Priority::High, Priority::Normal, Priority::Low];
}

/// Kept with the execution; nothing of it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Who started it.
    pub by: String,
    pub priority: Priority,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The caller's own id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// Debug lines are kept, and errors tell where in the code they arose.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Started by a caller who may not edit definitions. What it leads to is restricted as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// Whoever works on the data folder itself is its owner.
impl Default for Options {
    fn default() -> Self {
        Options {
            by: "owner".to_owned(),
            priority: Priority::Normal,
            tags: Vec::new(),
            correlation: None,
            debug: false,
            webhook: None,
            restricted: false,
        }
    }
}

impl Options {
    /// What an execution that this one leads to takes over: a child, or a retry.
    #[must_use]
    pub fn inherited(&self, by: String) -> Options {
        let Options { priority, debug, restricted, .. } = *self;
        Options { by, priority, debug, restricted, ..Options::default() }
    }
}

/// Who is told what happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub url: String,
    /// Public names of events.
    pub events: Vec<String>,
}

/// A caller's promise that requests with the same key are the same request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// Digest of the request.
    pub request: [u8; 32],
    /// A key of an execution that ended before this is free again.
    pub forgotten: Millis,
}
