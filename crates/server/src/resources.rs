//! Resources that this process serves to its workers: secrets, rights, large values and memories of a data folder.

use crate::rights::TenantRights;
use crate::storage::Storage;
use crate::vault::SharedVault;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_artifact::{Artifact, key_of};
use windlass_engine::{ResourceRequest, Resources};
use windlass_protocol::{
    Body, BodyFile, Failure, Memory, MemorySearch, NoRoom, ResourceAsk, ResourceReply, RoutingTarget,
    SecretValue, codes,
};
use windlass_store::sqlite::SqliteReader;
use windlass_store::{
    Artifacts, Memories, MemoryQuery, Registry, StoreError, StoredMemory, TargetKind, Tenant, Usages,
    WorkflowId,
};

#[derive(Debug)]
pub(crate) struct FolderResources {
    pub vault: Arc<SharedVault>,
    pub rights: Arc<TenantRights>,
    pub storage: Arc<Storage>,
    pub artifacts: Artifacts,
    pub usages: Arc<Usages>,
    pub memories: Mutex<SqliteReader>,
}

impl Resources for FolderResources {
    fn no_room(&self, tenant: &Tenant) -> Option<NoRoom> {
        self.storage.no_room(tenant)
    }

    fn serve(&self, request: ResourceRequest) -> ResourceReply {
        let ResourceRequest { tenant, workflow, ask } = request;
        let served = match ask {
            ResourceAsk::GetRights => Ok(ResourceReply::Rights(self.rights.of(&tenant))),
            ResourceAsk::OpenSecret { name } => self
                .vault
                .open_for_step(&tenant, &name)
                .map(|value| ResourceReply::Secret(SecretValue(value))),
            ResourceAsk::PutArtifact { key, body } => self.put(&tenant, key, body),
            ResourceAsk::GetArtifact { key } => self.get(&tenant, &key),
            ResourceAsk::GetArtifactFile { key } => self.get_file(&tenant, &key),
            ResourceAsk::SearchMemory(search) => self.search(tenant, workflow, search),
            ResourceAsk::FindRoutingKey { target } => self.find_routing_key(&tenant, &target),
            // The engine stores memories of workflows itself.
            ResourceAsk::StoreMemory { .. } => Err(no_workflow()),
        };
        served.unwrap_or_else(|failure| ResourceReply::Failed(*failure))
    }
}

impl FolderResources {
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
        target: &RoutingTarget,
    ) -> Result<ResourceReply, Box<Failure>> {
        let named = [(TargetKind::Sandbox, &target.sandbox), (TargetKind::RouteGroup, &target.route_group)];
        let named = named.into_iter().find_map(|(kind, name)| Some((kind, name.as_ref()?)));
        let Some((kind, name)) = named else {
            return Ok(ResourceReply::RoutingKey(target.routing_key.clone()));
        };
        let mut reader = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let found = reader.target(tenant, kind, name).map_err(|error| {
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
        let mut reader = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let found = reader.memories(&query).map_err(|error| no_memory(&error.to_string()))?;
        let found: Result<Vec<Memory>, Box<Failure>> = found.into_iter().map(memory).collect();
        found.map(ResourceReply::Memories)
    }
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
