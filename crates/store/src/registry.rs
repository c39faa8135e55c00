//! Objects that plans refer to: actions with their revisions, and the clusters, sandboxes and route groups that steps
//! are sent to.

use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis, RunId, StepRun};

/// Maximum number of actions of a tenant. A plan has at most a few hundred steps.
pub const ACTIONS_MAX: usize = 1_000;
/// Maximum number of revisions of an action. All of them are kept until the action is deleted.
pub const ACTION_REVISIONS_MAX: u32 = 1_000;
/// Maximum number of clusters, of sandboxes and of route groups of a tenant.
pub const TARGETS_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u128);

/// A reference to an action of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichAction {
    Id(ActionId),
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAction {
    pub id: ActionId,
    pub tenant: Tenant,
    /// Unique among the actions of the tenant.
    pub name: String,
    pub description: Option<String>,
    /// Whether new plans may use it.
    pub enabled: bool,
    /// Number of the newest revision, from 1.
    pub revision: u32,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// An unchangeable version of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRevision {
    pub revision: u32,
    /// Document as JSON. The store does not parse it.
    pub document: String,
    pub author: String,
    pub at: Millis,
}

/// A document that becomes the newest revision of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionDocument {
    /// Id of the action if the tenant has none of that name.
    pub id: ActionId,
    pub tenant: Tenant,
    pub name: String,
    pub description: Option<String>,
    pub document: String,
    pub author: String,
    pub at: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetKind {
    Cluster,
    Sandbox,
    RouteGroup,
}

impl TargetKind {
    pub const ALL: [TargetKind; 3] = [TargetKind::Cluster, TargetKind::Sandbox, TargetKind::RouteGroup];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TargetKind::Cluster => "cluster",
            TargetKind::Sandbox => "sandbox",
            TargetKind::RouteGroup => "route_group",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<TargetKind> {
        TargetKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A cluster, sandbox or route group of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingTarget {
    pub tenant: Tenant,
    pub kind: TargetKind,
    pub name: String,
    /// Cluster of a sandbox or route group, if it is known.
    pub cluster: Option<String>,
    /// Value that steps send with their requests; clusters have none.
    pub routing_key: Option<String>,
    pub ready: bool,
    /// Polled while steps wait for the target.
    pub ready_url: Option<String>,
    /// Reason for which the last poll did not find it ready.
    pub reason: Option<String>,
    pub polled_at: Option<Millis>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// The result of a request to the URL of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPoll {
    pub tenant: Tenant,
    pub kind: TargetKind,
    pub name: String,
    /// The URL that was polled. The result is dropped if the target has another URL by now.
    pub ready_url: String,
    pub ready: bool,
    /// Replaces the key of the target.
    pub routing_key: Option<String>,
    pub reason: Option<String>,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryWrite {
    /// Stores the next revision of an action, which is created with its first one. `Duplicate` when the newest revision is
    /// the same, `Conflict` when the tenant has [`ACTIONS_MAX`] actions or the action [`ACTION_REVISIONS_MAX`] revisions.
    PutAction(Box<ActionDocument>),
    /// `Duplicate` when the tenant has no such action.
    EnableAction { tenant: Tenant, name: String, enabled: bool, at: Millis },
    /// Deletes an action with its revisions; `Duplicate` when the tenant has no such action.
    DeleteAction { tenant: Tenant, name: String },
    /// Adds or replaces a target; `Conflict` when the tenant has [`TARGETS_MAX`] of that kind. The time of the creation and,
    /// without another one, the routing key of the known target are kept.
    PutTarget(Box<RoutingTarget>),
    /// `Duplicate` when the target is gone or has another URL.
    TargetPolled(Box<TargetPoll>),
    /// `Duplicate` when the tenant has no such target.
    DeleteTarget { tenant: Tenant, kind: TargetKind, name: String },
}

/// Reads what plans refer to. Lists are ordered by name and continue after a name.
pub trait Registry: Reader {
    fn actions(
        &mut self,
        tenant: &Tenant,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<Vec<StoredAction>>;

    /// Returns an action with a revision of it, the newest without a number.
    fn action(
        &mut self,
        tenant: &Tenant,
        which: &WhichAction,
        revision: Option<u32>,
    ) -> StoreResult<Option<(StoredAction, ActionRevision)>>;

    /// Returns revisions of an action, the newest first, from before a number; their documents are empty.
    fn action_revisions(
        &mut self,
        tenant: &Tenant,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Vec<ActionRevision>>;

    fn targets(
        &mut self,
        tenant: &Tenant,
        kind: TargetKind,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<Vec<RoutingTarget>>;

    fn target(&mut self, tenant: &Tenant, kind: TargetKind, name: &str)
    -> StoreResult<Option<RoutingTarget>>;

    /// Returns step-runs of all tenants that wait for their route, in the order of the store, after a given one. Those of
    /// executions that are held or in quarantine are left out.
    fn awaited_routes(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        limit: usize,
    ) -> StoreResult<Vec<AwaitedRoute>>;
}

/// A step-run that waits until its target is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitedRoute {
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub run: RunId,
    pub state: StepRun,
}
