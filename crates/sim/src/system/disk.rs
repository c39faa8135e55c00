//! A disk in memory: the tables of a store, and what one batch of writes does to them. It holds what a reader may see;
//! [`super::store`] decides when that is and what a crash leaves of it.

mod commit;
mod reading;

pub use reading::DiskReader;

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::Artifact;
use windlass_kernel::{ExecutionId, Fence, Millis, Net, NetDigest, NetSpec, RunId};
use windlass_store::rules::{
    DefinitionFacts, DefinitionVerdict, MailEnding, MailFacts, OfferClaim, OfferFacts, Refusals,
    WorkflowFacts, end_mail, judge_definition, judge_offer_write, may_fetch,
};
use windlass_store::{
    Applied, Class, CommitId, Creation, Definition, DefinitionId, HeadRow, HookClaim, Lease, Letter, LiveRun,
    LogChunk, Mail, MailId, Part, Position, Progress, Sealed, Stop, StoreError, StoredDefinition, Tenant,
    WorkflowId, Write,
};

/// Cheap to copy: what two copies share is not copied, so a batch is tried on a copy and kept or thrown away.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    executions: BTreeMap<ExecutionId, Arc<ExecutionRows>>,
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
    /// Requests to this disk that a correct disk would refuse.
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
struct ExecutionRows {
    /// Rises with creation.
    key: i64,
    creation: Creation,
    journal: Vec<Arc<Journaled>>,
    head: HeadRow,
    ctx: Option<Vec<u8>>,
    runs: BTreeMap<RunId, Arc<StoredRun>>,
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

/// A live step-run; lease, cursor and progress belong to an open offer.
#[derive(Debug, Clone)]
struct StoredRun {
    row: LiveRun,
    lease: Option<Lease>,
    cursor: Option<Arc<serde_json::Value>>,
    progress: Option<Progress>,
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

    /// Returns the disk after the batch, and what became of each write. This one stays as it is.
    pub fn after(&self, batch: &[Write]) -> Result<(Disk, Vec<Applied>), StoreError> {
        let mut next = self.clone();
        let mut refusals = Refusals::default();
        let applied = batch.iter().map(|write| next.apply(write, &mut refusals)).collect::<Result<_, _>>()?;
        Ok((next, applied))
    }

    fn apply(&mut self, write: &Write, refusals: &mut Refusals) -> Result<Applied, StoreError> {
        Ok(match write {
            Write::Commit(commit) if refusals.contain(commit.execution) => Applied::Conflict,
            Write::Commit(commit) => {
                let applied = self.commit(commit)?;
                refusals.record(commit.execution, applied);
                applied
            }
            Write::Define(definition) => self.define(definition)?,
            Write::Net(net) => {
                self.keep_net(net);
                Applied::Done
            }
            Write::Lease(lease) => {
                let Lease { execution, run, fence, session, .. } = *lease;
                let claim = OfferClaim::Lease(session);
                self.claim(refusals, (execution, run, fence), claim, |offer| offer.lease = Some(*lease))
            }
            Write::Checkpoint { execution, run, fence, cursor } => {
                let forgets = self.lax.cursors;
                self.claim(refusals, (*execution, *run, *fence), OfferClaim::Report, |offer| {
                    if !forgets {
                        offer.cursor = Some(cursor.clone());
                    }
                })
            }
            Write::Progress { execution, run, fence, progress } => {
                self.claim(refusals, (*execution, *run, *fence), OfferClaim::Report, |offer| {
                    offer.progress = Some(progress.clone());
                })
            }
            // No machine of this world keeps any.
            Write::Entry(_) => Applied::Done,
            Write::Accept(mail) => Applied::Accepted(self.accept(mail)),
            Write::Settle { mail, refused } => match end_mail(self.mail_facts(*mail)) {
                Some(ending) => {
                    self.close(*mail, ending, refused.clone().map_or(Ok(()), Err));
                    Applied::Done
                }
                None => Applied::Duplicate,
            },
            Write::Fetched { mail } if may_fetch(self.mail_facts(*mail)) => {
                self.inbox.remove(mail);
                Applied::Done
            }
            Write::Fetched { .. } => Applied::Duplicate,
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

    fn keep_net(&mut self, net: &Net) {
        self.nets.entry(net.digest()).or_insert_with(|| Arc::new(net.spec().clone()));
    }

    fn define(&mut self, definition: &Definition) -> Result<Applied, StoreError> {
        let verdict = judge_definition(definition, &mut Definitions { disk: self, definition })?;
        let (workflow, version) = match verdict {
            DefinitionVerdict::Answer(applied) => return Ok(applied),
            DefinitionVerdict::Insert { id, version, .. } => (id, version),
        };
        self.keep_net(&definition.net);
        let id = DefinitionId(self.definitions.len() as i64 + 1);
        let stored = StoredDefinition {
            id,
            workflow,
            tenant: definition.tenant.clone(),
            name: definition.name.clone(),
            version,
            dialect: definition.dialect.clone(),
            source: definition.source.clone(),
            workload: definition.workload.clone(),
            manifest: definition.manifest.clone(),
            net: definition.net.digest(),
        };
        self.definitions.insert(id, Arc::new(stored));
        Ok(Applied::Defined(id, version, workflow))
    }

    /// Changes an offer if the claim on it is accepted.
    fn claim(
        &mut self,
        refusals: &Refusals,
        (execution, run, fence): (ExecutionId, RunId, Fence),
        claim: OfferClaim,
        change: impl FnOnce(&mut StoredRun),
    ) -> Applied {
        let lax = self.lax.fences;
        let offer = if refusals.contain(execution) { None } else { self.run_mut(execution, run) };
        let applied = judge_offer_write(offer.as_deref().and_then(StoredRun::offer), fence, claim);
        if applied == Applied::Done || lax {
            offer.map(change);
            return Applied::Done;
        }
        applied
    }

    fn run_mut(&mut self, execution: ExecutionId, run: RunId) -> Option<&mut StoredRun> {
        let rows = Arc::make_mut(self.executions.get_mut(&execution)?);
        rows.runs.get_mut(&run).map(Arc::make_mut)
    }

    fn accept(&mut self, mail: &Mail) -> MailId {
        self.posted += 1;
        let id = MailId(self.posted);
        let post =
            Post { to: mail.to, letter: mail.letter.clone(), wants_answer: mail.answered, answer: None };
        self.inbox.insert(id, Arc::new(post));
        id
    }

    fn mail_facts(&self, mail: MailId) -> Option<MailFacts> {
        let post = self.inbox.get(&mail)?;
        Some(MailFacts { wants_answer: post.wants_answer, settled: post.answer.is_some() })
    }

    fn close(&mut self, mail: MailId, ending: MailEnding, answer: Result<(), String>) {
        if self.lax.mail {
            return;
        }
        match (ending, self.inbox.get_mut(&mail)) {
            (MailEnding::Answer, Some(post)) => Arc::make_mut(post).answer = Some(answer),
            (MailEnding::Answer | MailEnding::Delete, _) => drop(self.inbox.remove(&mail)),
        }
    }
}

/// Facts for the rules about one definition. Workflows are known by their newest version; none claims hooks.
struct Definitions<'d> {
    disk: &'d Disk,
    definition: &'d Definition,
}

impl Disk {
    /// Returns versions of the workflow of a tenant that is meant, in their order.
    fn versions(
        &self,
        of: &Tenant,
        is_meant: impl Fn(&StoredDefinition) -> bool,
    ) -> Vec<&Arc<StoredDefinition>> {
        let all = || self.definitions.values().filter(|stored| stored.tenant == *of);
        // Ids rise: of workflows of the same name the newest has the newest first version.
        let first = all().rfind(|stored| stored.version == 1 && is_meant(stored));
        first.map_or(Vec::new(), |first| all().filter(|stored| stored.workflow == first.workflow).collect())
    }
}

impl Definitions<'_> {
    fn find(
        &self,
        is_meant: impl Fn(&StoredDefinition) -> bool,
    ) -> Option<WorkflowFacts<Arc<StoredDefinition>>> {
        let newest = *self.disk.versions(&self.definition.tenant, is_meant).last()?;
        Some(WorkflowFacts { key: newest.clone(), id: newest.workflow, newest: newest.version })
    }
}

impl DefinitionFacts for Definitions<'_> {
    type Key = Arc<StoredDefinition>;

    fn find_named(&mut self) -> Result<Option<WorkflowFacts<Self::Key>>, StoreError> {
        Ok(self.find(|stored| stored.name == self.definition.name))
    }

    fn find_by_id(&mut self, id: WorkflowId) -> Result<Option<WorkflowFacts<Self::Key>>, StoreError> {
        Ok(self.find(|stored| stored.workflow == id))
    }

    fn find_same(&mut self, workflow: &WorkflowFacts<Self::Key>) -> Result<Option<DefinitionId>, StoreError> {
        let Definition { net, source, .. } = self.definition;
        let newest = &workflow.key;
        Ok((newest.net == net.digest() && newest.source == *source).then_some(newest.id))
    }

    fn hook_owner(&mut self, _claim: &HookClaim) -> Result<Option<WorkflowId>, StoreError> {
        Ok(None)
    }
}

impl StoredRun {
    /// The step-run as an open offer, if it is one.
    fn offer(&self) -> Option<OfferFacts> {
        let session = self.lease.map(|lease| lease.session);
        (self.row.class == Class::Offered).then_some(OfferFacts { fence: self.row.fence, session })
    }
}
