//! Resources that workers reach through the engine and that the engine does not hold itself.

use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use windlass_kernel::ExecutionId;
use windlass_protocol::{Failure, NoRoom, ResourceAsk, ResourceReply, Rights, Variables, codes};
use windlass_store::{Tenant, WorkflowId};

/// Serves secrets, rights, large values and memories to units that workers hold. The lane has checked the fence, and the
/// tenant is the one of the unit's execution. What a unit may have is decided here, by what is stored about it: its worker
/// may ask for anything.
pub trait Resources: Debug + Send + Sync {
    /// Returns the reason for which nothing more can be stored for the tenant, if there is one. Called for every
    /// dispatch: it must be quick and must not wait.
    fn no_room(&self, tenant: &Tenant) -> Option<NoRoom>;

    /// Serves one request. May wait: it is called from threads that tenants share in turn.
    fn serve(&self, request: ResourceRequest) -> ResourceReply;
}

#[derive(Debug)]
pub struct ResourceRequest {
    pub tenant: Tenant,
    pub workflow: Option<WorkflowId>,
    pub unit: RequestingUnit,
    pub ask: ResourceAsk,
}

/// A unit that needs a resource, as it is stored.
#[derive(Debug, Clone)]
pub struct RequestingUnit {
    pub execution: ExecutionId,
    /// Whether its worker, or one whose results it may read, is a process of its own.
    pub is_remote: bool,
    /// Whether it is a whole execution.
    pub is_whole: bool,
    /// Inputs of the execution, or the reference to them.
    pub inputs: Arc<Value>,
    /// Whether a worker that is a process of its own may have chosen the inputs.
    pub inputs_of_worker: bool,
    /// Stored pipeline of the unit.
    pub spec: Option<Arc<Value>>,
    /// Stored pipelines of the steps whose results it reads.
    pub reads: Vec<Arc<Value>>,
    /// Whether it reads results of sub-executions.
    pub reads_children: bool,
}

impl Default for RequestingUnit {
    fn default() -> RequestingUnit {
        RequestingUnit {
            execution: ExecutionId(0),
            is_remote: false,
            is_whole: false,
            inputs: Arc::default(),
            inputs_of_worker: false,
            spec: None,
            reads: Vec::new(),
            reads_children: false,
        }
    }
}

/// Resources of an engine without any: every right, and nothing stored.
#[derive(Debug)]
pub(crate) struct NoResources;

impl Resources for NoResources {
    fn no_room(&self, _: &Tenant) -> Option<NoRoom> {
        None
    }

    fn serve(&self, request: ResourceRequest) -> ResourceReply {
        match request.ask {
            ResourceAsk::GetRights => {
                ResourceReply::Rights(Rights { programs: true, variables: Variables::All })
            }
            ResourceAsk::GetArtifact { .. } | ResourceAsk::GetArtifactFile { .. } => {
                ResourceReply::Artifact(None)
            }
            ResourceAsk::SearchMemory(_) => ResourceReply::Memories(Vec::new()),
            ResourceAsk::FindRoutingKey { .. } => ResourceReply::RoutingKey(None),
            ResourceAsk::OpenSecret { .. }
            | ResourceAsk::PutArtifact { .. }
            | ResourceAsk::StoreMemory { .. } => ResourceReply::Failed(Failure::new(
                codes::RESOURCE_NOT_FOUND,
                "this engine stores no secrets and no values",
            )),
        }
    }
}
