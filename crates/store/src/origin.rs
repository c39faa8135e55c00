//! Origin of an execution: one value from the request that starts it to the row that stores it.

use crate::commit::{DefinitionId, WorkflowId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Millis};

/// Origin of an execution. It is built once, where the start is requested, and never changes. A new field is added
/// here and to the request; a field that lists are filtered by also gets a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    pub tenant: Tenant,
    pub definition: Option<DefinitionId>,
    /// The workflow that the definition is a version of. The store reads it from the definition.
    pub workflow: Option<WorkflowId>,
    /// `manual`, `api`, `webhook`, `workflow`.
    pub trigger: Cow<'static, str>,
    /// The execution that started it, that it retries, or that the caller names as its predecessor.
    pub parent: Option<ExecutionId>,
    /// The ended execution that this one is a retry of.
    pub retry_of: Option<ExecutionId>,
    pub options: Options,
    /// Unique among the starts of the workflow; `Taken` when it is not. Not read back.
    pub key: Option<IdempotencyKey>,
}

impl Origin {
    /// Trigger of an execution that a step of another one started.
    pub const CHILD: &str = "workflow";

    /// Returns whether a worker outside of the server may have chosen the inputs.
    #[must_use]
    pub fn has_inputs_of_worker(&self) -> bool {
        self.options.inputs_of_worker || (self.trigger == Origin::CHILD && self.options.runner.is_some())
    }
}

/// A start by the owner of the data folder.
impl Default for Origin {
    fn default() -> Self {
        Origin {
            tenant: Tenant::default(),
            definition: None,
            workflow: None,
            trigger: Cow::Borrowed("manual"),
            parent: None,
            retry_of: None,
            options: Options::default(),
            key: None,
        }
    }
}

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

/// Tenant of a data folder that is used without a server.
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

/// Priority among a tenant's offers.
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

/// Options of a start, stored as one JSON column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// User who started it.
    pub by: String,
    pub priority: Priority,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Correlation id that the caller chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// Whether debug lines are stored, and errors show where in the code they arose.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Whether a caller who may not edit definitions started it. Executions that follow from it are restricted as
    /// well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
    /// Users who started the executions that this one continues or is a part of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<String>,
    /// Workers that run its steps. None: the workers of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// Whether a worker outside of the server supplied the inputs, because the execution retries one that a step of a worker
    /// started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inputs_of_worker: bool,
}

/// A group of workers outside of the server, as far as they are in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Runner {
    pub group: String,
    /// None: workers of every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// A process that uses the data folder itself acts as its owner.
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
            makers: Vec::new(),
            runner: None,
            inputs_of_worker: false,
        }
    }
}

impl Options {
    /// Returns the options of a child of the execution.
    #[must_use]
    pub fn inherited(&self, by: String) -> Options {
        let Options { priority, debug, restricted, .. } = *self;
        let runner = self.runner.clone();
        Options { priority, debug, restricted, runner, ..Options::default() }.started(by, self)
    }

    /// Returns these options for an execution that `by` starts, and that continues or is a part of an earlier one.
    #[must_use]
    pub fn started(self, by: String, earlier: &Options) -> Options {
        let mut makers = earlier.makers.clone();
        if earlier.by != by && !makers.contains(&earlier.by) {
            makers.push(earlier.by.clone());
        }
        Options { by, makers, ..self }
    }
}

/// Receiver of events of the execution.
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
    /// Time before which an execution must have ended for its key to be free again.
    pub forgotten: Millis,
}
