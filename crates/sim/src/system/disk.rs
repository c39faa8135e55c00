//! A disk in memory: the tables of a store, and what one batch of writes does to them. It holds what a reader may see;
//! [`super::store`] decides when that is and what a crash leaves of it.

mod commit;
mod reading;

pub use reading::DiskReader;

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::Artifact;
use windlass_kernel::{ExecutionId, Fence, Millis, NetDigest, NetSpec, RunId};
use windlass_store::{
    Applied, CommitId, Creation, Definition, DefinitionId, HeadRow, Lease, Letter, LiveRun, LogChunk, Mail,
    MailId, Part, Position, Sealed, Stop, StoreError, StoredDefinition, Target, Tenant, Write,
};

/// Cheap to copy: what two copies share is not copied, so a batch is tried on a copy and kept or thrown away.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    executions: BTreeMap<ExecutionId, Arc<Shelf>>,
    nets: BTreeMap<NetDigest, Arc<NetSpec>>,
    definitions: BTreeMap<DefinitionId, Arc<StoredDefinition>>,
    inbox: BTreeMap<MailId, Arc<Post>>,
    stops: BTreeMap<(ExecutionId, RunId, Fence), Stop>,
    logs: BTreeMap<Position, Arc<LogChunk>>,
    /// JSON by tenant and key.
    artifacts: BTreeMap<(Tenant, String), Arc<Vec<u8>>>,
    /// Journal rows so far, of all executions.
    positions: i64,
    posted: i64,
    /// What was asked of this disk that a sound one would refuse.
    pub(super) lax: Laxity,
}

/// Checks that a sabotaged disk leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Laxity {
    pub fences: bool,
    pub mail: bool,
    pub mail_twice: bool,
    pub drops_rows: bool,
    pub drops_journal: bool,
    pub old_times: bool,
    pub cursors: bool,
}

/// All rows of one execution.
#[derive(Debug, Clone)]
struct Shelf {
    /// Rises with creation.
    key: i64,
    creation: Creation,
    journal: Vec<Arc<Journaled>>,
    head: HeadRow,
    ctx: Option<Vec<u8>>,
    runs: BTreeMap<RunId, Arc<Standing>>,
    parts: BTreeMap<(Part, Vec<u8>), Arc<Entry>>,
    facts: Vec<(RunId, Position)>,
}

#[derive(Debug, Clone)]
struct Journaled {
    position: Position,
    commit: CommitId,
    version: u64,
    sealed: Sealed,
}

/// A live step-run; lease and cursor lie with an open offer.
#[derive(Debug, Clone)]
struct Standing {
    row: LiveRun,
    lease: Option<Lease>,
    cursor: Option<Arc<serde_json::Value>>,
}

#[derive(Debug, Clone)]
struct Entry {
    due: Option<Millis>,
    value: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Post {
    to: ExecutionId,
    letter: Letter,
    wants_answer: bool,
    answer: Option<Result<(), String>>,
}

impl Disk {
    pub(super) fn keep(&mut self, tenant: &Tenant, artifact: &Artifact) {
        self.artifacts.insert((tenant.clone(), artifact.key.clone()), Arc::new(artifact.bytes.clone()));
    }

    pub(super) fn artifact(&self, tenant: &Tenant, key: &str) -> Option<Arc<Vec<u8>>> {
        self.artifacts.get(&(tenant.clone(), key.to_owned())).cloned()
    }

    /// The disk after the batch, and what became of each write. This one stays as it is.
    pub fn after(&self, batch: &[Write]) -> Result<(Disk, Vec<Applied>), StoreError> {
        let mut next = self.clone();
        let mut refused = Vec::new();
        let applied = batch.iter().map(|write| next.apply(write, &mut refused)).collect::<Result<_, _>>()?;
        Ok((next, applied))
    }

    /// `refused`: executions of which a commit of this batch was refused; what was decided after it stands on nothing.
    fn apply(&mut self, write: &Write, refused: &mut Vec<ExecutionId>) -> Result<Applied, StoreError> {
        Ok(match write {
            Write::Commit(commit) if refused.contains(&commit.execution) => Applied::Conflict,
            Write::Commit(commit) => {
                let applied = self.commit(commit)?;
                if !matches!(applied, Applied::Committed(_)) {
                    refused.push(commit.execution);
                }
                applied
            }
            Write::Define(definition) => self.define(definition),
            Write::Net(net) => {
                self.nets.entry(net.digest()).or_insert_with(|| Arc::new(net.spec().clone()));
                Applied::Done
            }
            Write::Lease(lease) if refused.contains(&lease.execution) => Applied::Fenced,
            Write::Lease(lease) => self.lease(lease),
            Write::Checkpoint { execution, .. } if refused.contains(execution) => Applied::Fenced,
            Write::Checkpoint { execution, run, fence, cursor } => {
                self.checkpoint(*execution, *run, *fence, cursor)
            }
            Write::Progress { execution, run, fence, .. } => {
                let open = self.standing(*execution, *run).is_some_and(|standing| standing.is_open(*fence));
                if open { Applied::Done } else { Applied::Fenced }
            }
            // No machine of this world keeps any.
            Write::Entry(_) => Applied::Done,
            Write::Accept(mail) => Applied::Accepted(self.accept(mail)),
            Write::Settle { mail, refused } => self.settle(*mail, refused.clone()),
            Write::Fetched { mail } => self.fetched(*mail),
            Write::Stopped(stop) => {
                let key = (stop.execution, stop.run, stop.fence);
                if self.stops.remove(&key).is_some() { Applied::Done } else { Applied::Duplicate }
            }
            Write::Log(chunk) if !self.executions.contains_key(&chunk.execution) => Applied::Fenced,
            Write::Log(chunk) => {
                self.positions += 1;
                let position = Position(self.positions);
                self.logs.insert(position, Arc::new(chunk.clone()));
                Applied::Done
            }
        })
    }

    /// The same text may mean another net under a later version of the program: then it is a new definition.
    fn define(&mut self, definition: &Definition) -> Applied {
        let net = definition.net.digest();
        let versions = self.definitions.values().filter(|known| known.name == definition.name);
        let newest = versions.max_by_key(|known| known.version);
        let same = |known: &&Arc<StoredDefinition>| known.net == net && known.source == definition.source;
        if let Some(known) = newest.filter(same) {
            return Applied::Defined(known.id, known.version, known.workflow);
        }
        let version = newest.map_or(0, |known| known.version) + 1;
        // Everyone here defines by name.
        let (Target::Named(made) | Target::New(made) | Target::After(made, _)) = definition.target;
        let workflow = newest.map_or(made, |known| known.workflow);
        let id = DefinitionId(self.definitions.len() as i64 + 1);
        self.nets.entry(net).or_insert_with(|| Arc::new(definition.net.spec().clone()));
        let stored = StoredDefinition {
            id,
            workflow,
            tenant: definition.tenant.clone(),
            name: definition.name.clone(),
            version,
            dialect: definition.dialect.clone(),
            source: definition.source.clone(),
            workload: definition.workload.clone(),
            net,
        };
        self.definitions.insert(id, Arc::new(stored));
        Applied::Defined(id, version, workflow)
    }

    fn lease(&mut self, lease: &Lease) -> Applied {
        let lax = self.lax.fences;
        let Some(standing) = self.standing(lease.execution, lease.run) else {
            return if lax { Applied::Done } else { Applied::Fenced };
        };
        let free = standing.lease.is_none_or(|held| held.session == lease.session);
        let allowed = standing.is_open(lease.fence) && free;
        if !allowed && !lax {
            return Applied::Fenced;
        }
        standing.lease = Some(*lease);
        Applied::Done
    }

    fn checkpoint(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        fence: Fence,
        cursor: &Arc<serde_json::Value>,
    ) -> Applied {
        let (lax, forgets) = (self.lax.fences, self.lax.cursors);
        let Some(standing) = self.standing(execution, run) else {
            return if lax { Applied::Done } else { Applied::Fenced };
        };
        let allowed = standing.is_open(fence) && standing.lease.is_some();
        if !allowed && !lax {
            return Applied::Fenced;
        }
        if !forgets {
            standing.cursor = Some(cursor.clone());
        }
        Applied::Done
    }

    fn standing(&mut self, execution: ExecutionId, run: RunId) -> Option<&mut Standing> {
        let shelf = Arc::make_mut(self.executions.get_mut(&execution)?);
        shelf.runs.get_mut(&run).map(Arc::make_mut)
    }

    fn accept(&mut self, mail: &Mail) -> MailId {
        self.posted += 1;
        let id = MailId(self.posted);
        let post =
            Post { to: mail.to, letter: mail.letter.clone(), wants_answer: mail.answered, answer: None };
        self.inbox.insert(id, Arc::new(post));
        id
    }

    fn is_open(&self, mail: MailId) -> bool {
        self.inbox.get(&mail).is_some_and(|post| post.answer.is_none())
    }

    fn settle(&mut self, mail: MailId, refused: Option<String>) -> Applied {
        if !self.is_open(mail) {
            return Applied::Duplicate;
        }
        self.close(mail, refused.map_or(Ok(()), Err));
        Applied::Done
    }

    /// Open mail gets its answer, or goes if nobody waits for one.
    fn close(&mut self, mail: MailId, answer: Result<(), String>) {
        if self.lax.mail {
            return;
        }
        match self.inbox.get_mut(&mail) {
            Some(post) if post.wants_answer => Arc::make_mut(post).answer = Some(answer),
            _ => drop(self.inbox.remove(&mail)),
        }
    }

    fn fetched(&mut self, mail: MailId) -> Applied {
        if self.inbox.get(&mail).is_none_or(|post| post.answer.is_none()) {
            return Applied::Duplicate;
        }
        self.inbox.remove(&mail);
        Applied::Done
    }
}

impl Standing {
    fn is_open(&self, fence: Fence) -> bool {
        self.row.class == windlass_store::Class::Offered && self.row.fence == Some(fence)
    }
}
