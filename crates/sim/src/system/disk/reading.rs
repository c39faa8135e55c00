//! Reading the disk: every call sees the state at its moment and stands alone.

use super::{Disk, Journaled, Post, Shelf};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::{
    Execution, ExecutionId, Head, Millis, Need, Net, NetDigest, Record, RunId, StepId, StepRun, Timer,
    TokenId, Values,
};
use windlass_store::{
    Class, DefinitionId, DueTimer, JournalPage, JournalRow, Listed, MailId, Offer, PageBounds, Part, PartRow,
    Position, Query, Reader, Rows, RunRow, Status, Stop, StoreError, Stored, StoredDefinition, StoredLog,
    StoredMail, Tenant, Which, WorkflowId, assemble, decode, open,
};

#[derive(Debug, Clone)]
pub struct DiskReader(pub(in crate::system) Arc<Mutex<Disk>>);

impl DiskReader {
    fn disk(&self) -> Disk {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reader for DiskReader {
    fn load(&mut self, execution: ExecutionId) -> Result<Option<Stored>, StoreError> {
        let disk = self.disk();
        let Some(shelf) = disk.executions.get(&execution) else { return Ok(None) };
        Ok(Some(Stored {
            state: shelf.state(execution)?,
            definition: shelf.creation.definition,
            trigger: shelf.creation.trigger.clone(),
            tenant: shelf.creation.tenant.clone(),
            options: shelf.creation.options.clone(),
            workflow: disk.workflow(shelf),
            parent: shelf.creation.parent,
        }))
    }

    fn journal(
        &mut self,
        execution: ExecutionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let disk = self.disk();
        let Some(shelf) = disk.executions.get(&execution) else { return Ok(Vec::new()) };
        let first = shelf.journal.partition_point(|row| row.version <= from).saturating_sub(1);
        let read: Result<Vec<JournalRow>, StoreError> =
            shelf.journal[first..].iter().take(limit).map(|row| row.read(execution)).collect();
        Ok(read?.into_iter().filter(|row| row.version + row.records.len() as u64 > from).collect())
    }

    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> Result<JournalPage, StoreError> {
        let mut rows = self.journal(execution, from, bounds.rows_max)?;
        let (read, mut kept, mut bytes) = (rows.len(), 0, 0);
        while kept < read && bytes < bounds.bytes_max {
            bytes += serde_json::to_vec(&rows[kept].records).map_or(0, |json| json.len());
            kept += 1;
        }
        rows.truncate(kept);
        Ok(JournalPage { rows, more: kept < read || kept == bounds.rows_max })
    }

    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> Result<Values, StoreError> {
        let mut values = Values::default();
        let records: Vec<Record> =
            self.journal(execution, 0, usize::MAX)?.into_iter().flat_map(|row| row.records).collect();
        values.load(&records, needs);
        let owner = self
            .disk()
            .executions
            .get(&execution)
            .map(|shelf| shelf.creation.tenant.clone())
            .unwrap_or_default();
        for need in needs {
            if let Need::Artifact(key) = need {
                let value =
                    self.disk().artifact(&owner, key).and_then(|bytes| serde_json::from_slice(&bytes).ok());
                values.artifacts.insert(key.clone(), value.map(Arc::new));
            }
        }
        Ok(values)
    }

    fn net(&mut self, digest: NetDigest) -> Result<Option<Net>, StoreError> {
        let disk = self.disk();
        let Some(spec) = disk.nets.get(&digest) else { return Ok(None) };
        let net = Net::new((**spec).clone());
        net.map(Some).map_err(|error| StoreError::Corrupt(format!("a net cannot be used: {error}")))
    }

    fn due(
        &mut self,
        after: Option<&DueTimer>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<DueTimer>, StoreError> {
        let disk = self.disk();
        if let Some(after) = after {
            disk.shelf(after.execution)?;
        }
        let mut due = Vec::new();
        for (execution, shelf) in &disk.executions {
            let timers = shelf.timers(until)?.into_iter();
            due.extend(timers.map(|(at, timer)| DueTimer { at, execution: *execution, timer }));
        }
        due.retain(|timer| after.is_none_or(|after| timer > after));
        due.sort();
        due.truncate(limit);
        Ok(due)
    }

    fn offers(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        let disk = self.disk();
        let place = after.map(|(id, run)| disk.shelf(id).map(|shelf| (shelf.key, run))).transpose()?;
        let mut offers: Vec<((i64, RunId), Offer)> = Vec::new();
        for (id, shelf) in &disk.executions {
            let open = shelf.runs.iter().filter(|(_, standing)| standing.row.class == Class::Offered);
            for (run, standing) in open {
                let Some(fence) = standing.row.fence else { continue };
                let (lease, cursor) = (standing.lease, standing.cursor.clone());
                let (tenant, priority) = (shelf.creation.tenant.clone(), shelf.creation.options.priority);
                let (execution, run, progress) = (*id, *run, None);
                let offer = Offer { execution, run, fence, lease, cursor, progress, tenant, priority };
                offers.push(((shelf.key, run), offer));
            }
        }
        offers.retain(|(at, _)| place.is_none_or(|place| *at > place));
        offers.sort_by_key(|(at, _)| *at);
        Ok(offers.into_iter().take(limit).map(|(_, offer)| offer).collect())
    }

    fn offers_of(
        &mut self,
        execution: ExecutionId,
        after: RunId,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        let mut offers = self.offers(None, usize::MAX)?;
        offers.retain(|offer| offer.execution == execution && offer.run > after);
        offers.truncate(limit);
        Ok(offers)
    }

    fn unfinished(&mut self, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let disk = self.disk();
        let cut = disk.executions.iter().filter(|(_, shelf)| shelf.head.goes_on);
        Ok(cut.map(|(id, _)| *id).take(limit).collect())
    }

    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> Result<Vec<Stop>, StoreError> {
        let disk = self.disk();
        let later = |stop: &&Stop| {
            after.is_none_or(|after| {
                (stop.execution, stop.run, stop.fence) > (after.execution, after.run, after.fence)
            })
        };
        Ok(disk.stops.values().filter(later).take(limit).copied().collect())
    }

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> Result<Vec<StoredMail>, StoreError> {
        let disk = self.disk();
        let open = |(id, post): &(&MailId, &Arc<Post>)| {
            post.answer.is_none() && after.is_none_or(|after| **id > after)
        };
        let stored = |(id, post): (&MailId, &Arc<Post>)| StoredMail {
            id: *id,
            to: post.to,
            letter: post.letter.clone(),
            answered: post.wants_answer,
        };
        Ok(disk.inbox.iter().filter(open).take(limit).map(stored).collect())
    }

    fn answer(&mut self, mail: MailId) -> Result<Option<Result<(), String>>, StoreError> {
        match self.disk().inbox.get(&mail) {
            Some(post) => Ok(post.answer.clone()),
            None => Err(StoreError::Corrupt(format!("nobody waits for an answer to mail {}", mail.0))),
        }
    }

    fn list(&mut self, query: &Query) -> Result<Vec<Listed>, StoreError> {
        let disk = self.disk();
        let before = query.before.map(|id| disk.shelf(id)).transpose()?.map(|shelf| shelf.key);
        let mut found: Vec<(&ExecutionId, &Arc<Shelf>)> = disk
            .executions
            .iter()
            .filter(|(_, shelf)| before.is_none_or(|before| shelf.key < before))
            .filter(|(_, shelf)| match query.status {
                None => true,
                Some(Status::Open) => !shelf.head.phase.is_ended(),
                Some(Status::Phase(phase)) => shelf.head.phase == phase,
                Some(Status::In(phases)) => phases.contains(&shelf.head.phase),
            })
            .collect();
        found.sort_by_key(|(_, shelf)| std::cmp::Reverse(shelf.key));
        Ok(found.into_iter().take(query.limit).map(|(id, shelf)| disk.listed(*id, shelf)).collect())
    }

    fn definition(&mut self, id: DefinitionId) -> Result<Option<StoredDefinition>, StoreError> {
        Ok(self.disk().definitions.get(&id).map(|definition| (**definition).clone()))
    }

    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> Result<Option<StoredDefinition>, StoreError> {
        let disk = self.disk();
        let is_meant = |definition: &StoredDefinition| match which {
            Which::Name(name) => definition.name == *name,
            Which::Id(id) => definition.workflow == *id,
        };
        let named = disk.definitions.values().filter(|definition| {
            is_meant(definition)
                && definition.tenant == *tenant
                && version.is_none_or(|version| definition.version == version)
        });
        Ok(named.max_by_key(|definition| definition.version).map(|definition| (**definition).clone()))
    }

    fn logs(
        &mut self,
        execution: ExecutionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        let disk = self.disk();
        let of = disk.logs.iter().filter(|(at, chunk)| **at > after && chunk.execution == execution);
        let stored = of.map(|(position, chunk)| StoredLog {
            position: *position,
            run: chunk.run,
            step: chunk.step.clone(),
            attempt: chunk.attempt,
            lines: chunk.lines.clone(),
        });
        Ok(stored.take(limit).collect())
    }

    fn rows(&mut self, execution: ExecutionId) -> Result<Option<Rows>, StoreError> {
        Ok(self.disk().executions.get(&execution).map(|shelf| shelf.rows()))
    }
}

/// An empty map in the form of state rows.
const NO_CONTEXT: [u8; 1] = [0x80];

impl Disk {
    /// A list goes on from an execution that is there.
    fn shelf(&self, id: ExecutionId) -> Result<&Shelf, StoreError> {
        let found = self.executions.get(&id).map(|shelf| &**shelf);
        found.ok_or_else(|| StoreError::Corrupt(format!("there is no execution {id} to go on from")))
    }

    fn workflow(&self, shelf: &Shelf) -> Option<WorkflowId> {
        let definition = shelf.creation.definition.and_then(|id| self.definitions.get(&id));
        definition.map(|definition| definition.workflow)
    }

    fn listed(&self, execution: ExecutionId, shelf: &Shelf) -> Listed {
        let definition = shelf.creation.definition.and_then(|id| self.definitions.get(&id));
        Listed {
            quarantine: None,
            execution,
            parent: shelf.creation.parent,
            definition: shelf.creation.definition,
            workflow: self.workflow(shelf),
            tenant: shelf.creation.tenant.clone(),
            options: shelf.creation.options.clone(),
            name: definition.map(|definition| definition.name.clone()),
            version: definition.map(|definition| definition.version),
            dialect: definition.map(|definition| definition.dialect.clone()),
            trigger: shelf.creation.trigger.clone(),
            phase: shelf.head.phase,
            held: shelf.head.held,
            created_at: shelf.creation.at,
            at: shelf.head.at,
        }
    }
}

impl Journaled {
    fn read(&self, execution: ExecutionId) -> Result<JournalRow, StoreError> {
        let records = open(execution, self.version, self.commit, &self.sealed)?;
        Ok(JournalRow { position: self.position, commit: self.commit, version: self.version, records })
    }
}

impl Shelf {
    fn state(&self, id: ExecutionId) -> Result<Execution<'static>, StoreError> {
        let runs: Vec<_> = self.runs.iter().map(|(run, standing)| (*run, standing.row.clone())).collect();
        let inputs = self.creation.inputs.clone();
        let net = self.creation.net;
        assemble(id, net, inputs, &self.head, self.ctx.as_deref(), &runs, &self.part_rows())
    }

    fn part_rows(&self) -> Vec<PartRow> {
        let row = |((part, key), entry): (&(Part, Vec<u8>), &Arc<super::Entry>)| PartRow {
            part: *part,
            key: key.clone(),
            due: entry.due,
            value: Some(entry.value.clone()),
        };
        self.parts.iter().map(row).collect()
    }

    fn rows(&self) -> Rows {
        let run = |(run, standing): (&RunId, &Arc<super::Standing>)| RunRow {
            run: *run,
            before: None,
            after: Some(standing.row.clone()),
        };
        Rows {
            head: self.head.clone(),
            ctx: Some(self.ctx.clone().unwrap_or(NO_CONTEXT.to_vec())),
            runs: self.runs.iter().map(run).collect(),
            parts: self.part_rows(),
            facts: self.facts.iter().map(|(run, _)| *run).collect(),
        }
    }

    /// Which timer a due column belongs to is told by the row it is in.
    fn timers(&self, until: Millis) -> Result<Vec<(Millis, Timer)>, StoreError> {
        let mut timers = Vec::new();
        let is_due = |due: Option<Millis>| due.is_some_and(|due| due <= until);
        if is_due(self.head.due) {
            let timer = decode::<Head>(&self.head.state)?.timer();
            timers.extend(timer.map(|(timer, at)| (at, timer)));
        }
        // A hold keeps the others due without letting them fire.
        if self.head.held || self.head.phase.is_ended() {
            return Ok(timers);
        }
        for (run, standing) in self.runs.iter().filter(|(_, standing)| is_due(standing.row.due)) {
            let state: StepRun = decode(&standing.row.state)?;
            timers.extend(Execution::timer_of(*run, &state).map(|(timer, at)| (at, timer)));
        }
        for ((_, key), entry) in self.parts.iter().filter(|(_, entry)| is_due(entry.due)) {
            let (step, token): (StepId, TokenId) = decode(key)?;
            timers.extend(entry.due.map(|at| (at, Timer::Gate { step, token })));
        }
        Ok(timers)
    }
}
