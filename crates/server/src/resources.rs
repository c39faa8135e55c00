//! Resources that this process serves to its workers: secrets, rights, large values and memories of a data folder.

use crate::database::DatabaseReader;
use crate::rights::TenantRights;
use crate::secret_names::{Naming, find_secret, find_target};
use crate::storage::Storage;
use crate::vault::SharedVault;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_artifact::{Artifact, key_of};
use windlass_engine::{RequestingUnit, ResourceRequest, Resources};
use windlass_protocol::{
    Body, BodyFile, Failure, Memory, MemorySearch, NoRoom, ResourceAsk, ResourceReply, RoutingTarget,
    SecretValue, codes,
};
use windlass_store::{
    Artifacts, Memories, MemoryQuery, Registry, StoreError, StoredMemory, TargetKind, Tenant, Usages,
    Workers as _, WorkflowId,
};

#[derive(Debug)]
pub(crate) struct FolderResources {
    pub vault: Arc<SharedVault>,
    pub rights: Arc<TenantRights>,
    pub storage: Arc<Storage>,
    pub artifacts: Artifacts,
    pub usages: Arc<Usages>,
    /// Reads memories, routing targets and owners of artifacts.
    pub rows: Mutex<DatabaseReader>,
}

impl Resources for FolderResources {
    fn no_room(&self, tenant: &Tenant) -> Option<NoRoom> {
        self.storage.no_room(tenant)
    }

    fn serve(&self, request: ResourceRequest) -> ResourceReply {
        let ResourceRequest { tenant, workflow, unit, ask } = request;
        let served = match ask {
            ResourceAsk::GetRights => Ok(ResourceReply::Rights(self.rights.of(&tenant))),
            ResourceAsk::OpenSecret { name } => self.open_secret(&tenant, &unit, &name),
            ResourceAsk::PutArtifact { key, body } => self.put(&tenant, key, body),
            ResourceAsk::GetArtifact { key } => {
                self.check_owner(&unit, &key).and_then(|()| self.get(&tenant, &key))
            }
            ResourceAsk::GetArtifactFile { key } => {
                self.check_owner(&unit, &key).and_then(|()| self.get_file(&tenant, &key))
            }
            ResourceAsk::SearchMemory(search) => self.search(tenant, workflow, search),
            ResourceAsk::FindRoutingKey { target } => self.find_routing_key(&tenant, &unit, &target),
            // The engine stores memories of workflows itself.
            ResourceAsk::StoreMemory { .. } => Err(no_workflow()),
        };
        served.unwrap_or_else(|failure| ResourceReply::Failed(*failure))
    }
}

impl FolderResources {
    /// Opens a secret that the definition of the unit names. In this process, it may also compute the name.
    fn open_secret(
        &self,
        tenant: &Tenant,
        unit: &RequestingUnit,
        name: &str,
    ) -> Result<ResourceReply, Box<Failure>> {
        let inputs = self.inputs(tenant, unit)?;
        match find_secret(unit, &inputs, name) {
            Naming::Named => {}
            Naming::Computed if !unit.is_remote => {}
            Naming::Computed => {
                return Err(denied(format!(
                    "a worker outside of the server may open the secret `{name}` only if the definition names it, or takes its \
                     name from the inputs of the execution"
                )));
            }
            Naming::NotNamed => {
                return Err(denied(format!("the definition of this work does not name the secret `{name}`")));
            }
        }
        self.vault.open_for_step(tenant, name).map(|value| ResourceReply::Secret(SecretValue(value)))
    }

    /// Returns the whole inputs of the execution of a unit.
    fn inputs(&self, tenant: &Tenant, unit: &RequestingUnit) -> Result<Arc<Value>, Box<Failure>> {
        let Some(key) = windlass_artifact::key(&unit.inputs) else { return Ok(unit.inputs.clone()) };
        let read = self.artifacts.fetch_missing(tenant, key).and_then(|()| self.artifacts.value(tenant, key));
        let read = read.map_err(|error| not_read(&error))?;
        Ok(read.unwrap_or_default())
    }

    /// Refuses an artifact that does not belong to the execution of the unit. In this process, references come from rows.
    fn check_owner(&self, unit: &RequestingUnit, key: &str) -> Result<(), Box<Failure>> {
        if !unit.is_remote {
            return Ok(());
        }
        let owns = self.rows().owns_artifact(unit.execution, key);
        match owns.map_err(|error| not_read(&error))? {
            true => Ok(()),
            false => Err(other_artifact(key)),
        }
    }

    fn rows(&self) -> MutexGuard<'_, DatabaseReader> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, tenant: &Tenant, key: String, body: Body) -> Result<ResourceReply, Box<Failure>> {
        if let Some(no_room) = self.storage.no_room(tenant) {
            return Err(Box::new(no_room.failure()));
        }
        let Body { length, bytes, file } = body;
        let added = match file {
            // Its key was computed when it was written.
            Some(BodyFile::Moved(file) | BodyFile::Shared(file)) => {
                self.artifacts.keep_file(tenant, &key, &file)
            }
            None if key_of(&bytes) == key => self.artifacts.keep(tenant, &Artifact { key, bytes }),
            None => return Err(cut_off(length)),
        };
        let added = added.map_err(|error| not_kept(&error))?;
        self.usages.add_artifacts(tenant, added);
        Ok(ResourceReply::Stored)
    }

    fn get(&self, tenant: &Tenant, key: &str) -> Result<ResourceReply, Box<Failure>> {
        let read = self.artifacts.fetch_missing(tenant, key).and_then(|()| self.artifacts.read(tenant, key));
        let read = read.map_err(|error| not_read(&error))?;
        Ok(ResourceReply::Artifact(read.map(Body::from)))
    }

    fn get_file(&self, tenant: &Tenant, key: &str) -> Result<ResourceReply, Box<Failure>> {
        let found =
            self.artifacts.fetch_missing(tenant, key).and_then(|()| self.artifacts.find_file(tenant, key));
        let found = found.map_err(|error| not_read(&error))?;
        let body = |(file, length)| Body::of_file(length, BodyFile::Shared(file));
        Ok(ResourceReply::Artifact(found.map(body)))
    }

    fn find_routing_key(
        &self,
        tenant: &Tenant,
        unit: &RequestingUnit,
        target: &RoutingTarget,
    ) -> Result<ResourceReply, Box<Failure>> {
        // A target that follows from results of steps is one that the worker could choose anyway.
        let inputs = self.inputs(tenant, unit)?;
        if find_target(unit, &inputs, target) == Naming::NotNamed {
            let message =
                "the routing context of this step does not name the sandbox or route group".to_owned();
            return Err(denied(message));
        }
        let named = [(TargetKind::Sandbox, &target.sandbox), (TargetKind::RouteGroup, &target.route_group)];
        let named = named.into_iter().find_map(|(kind, name)| Some((kind, name.as_ref()?)));
        let Some((kind, name)) = named else {
            return Ok(ResourceReply::RoutingKey(target.routing_key.clone()));
        };
        let found = self.rows().target(tenant, kind, name).map_err(|error| {
            let message = format!("`{name}`, which the step is routed to, cannot be read: {error}");
            Box::new(Failure::new(codes::TARGET_NOT_READ, message))
        })?;
        Ok(ResourceReply::RoutingKey(found.and_then(|target| target.routing_key)))
    }

    fn search(
        &self,
        tenant: Tenant,
        workflow: Option<WorkflowId>,
        search: MemorySearch,
    ) -> Result<ResourceReply, Box<Failure>> {
        let MemorySearch { key, prefix, words, limit } = search;
        let workflow = workflow.ok_or_else(no_workflow)?;
        let query = MemoryQuery { tenant, workflow, key, prefix, words, limit };
        let found = self.rows().memories(&query).map_err(|error| no_memory(&error.to_string()))?;
        let found: Result<Vec<Memory>, Box<Failure>> = found.into_iter().map(memory).collect();
        found.map(ResourceReply::Memories)
    }
}

/// Returns the refusal of an artifact of another execution. It does not reveal whether the tenant has such an artifact.
pub(crate) fn other_artifact(key: &str) -> Box<Failure> {
    denied(format!("the artifact {key} does not belong to the execution of this work"))
}

fn denied(message: String) -> Box<Failure> {
    Box::new(Failure::new(codes::PERMISSION_DENIED, message))
}

fn memory(stored: StoredMemory) -> Result<Memory, Box<Failure>> {
    let value = serde_json::from_str(&stored.value)
        .map_err(|error| no_memory(&format!("the memory `{}` cannot be parsed: {error}", stored.key)))?;
    Ok(Memory { key: stored.key, value, at: stored.at.0 })
}

fn not_kept(error: &StoreError) -> Box<Failure> {
    Box::new(Failure::new(codes::ARTIFACT_NOT_KEPT, format!("a large value cannot be stored: {error}")))
}

fn not_read(error: &StoreError) -> Box<Failure> {
    Box::new(Failure::new(codes::ARTIFACT_NOT_READ, format!("a large value cannot be read: {error}")))
}

fn cut_off(length: u64) -> Box<Failure> {
    let message = format!("a large value of {length} bytes arrived incomplete");
    Box::new(Failure::new(codes::ARTIFACT_NOT_KEPT, message))
}

fn no_workflow() -> Box<Failure> {
    no_memory("the execution belongs to no workflow")
}

fn no_memory(why: &str) -> Box<Failure> {
    let message = format!("memories cannot be used: {why}");
    let failure = Failure::new(codes::MEMORY_UNAVAILABLE, message);
    Box::new(Failure { retryable: Some(true), ..failure })
}
