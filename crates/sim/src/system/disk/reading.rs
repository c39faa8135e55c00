//! Reads from the disk. Every call sees the state of its moment and is independent of the others.

use super::{Disk, ExecutionRows, Journaled, Post};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::{Execution, ExecutionId, Millis, Need, Net, NetDigest, RunId, Timer, Values};
use windlass_store::rules::{
    JournalLookup, TimerPlace, TimerTable, artifact_keys, fill_page, gate_timer, head_timer, load_values,
    merge_timers, run_timer, table_fires,
};
use windlass_store::{
    Class, Creation, DefinitionId, DueTimer, JournalPage, JournalRow, ListedExecution, LogChunk, MailId,
    Offer, Origin, PageBounds, Part, PartRow, Position, Query, Reader, Rows, RunRow, Status, Stop,
    StoreError, Stored, StoredDefinition, StoredLog, StoredMail, Tenant, Which, WorkflowId, assemble, open,
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
        let Some(rows) = disk.executions.get(&execution) else { return Ok(None) };
        Ok(Some(Stored { state: rows.state(execution)?, origin: Arc::new(disk.origin(&rows.creation)) }))
    }

    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> Result<JournalPage, StoreError> {
        let disk = self.disk();
        let Some(rows) = disk.executions.get(&execution) else { return Ok(JournalPage::default()) };
        Journal { execution, rows }.page(from, bounds)
    }

    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> Result<Values, StoreError> {
        let disk = self.disk();
        let rows = disk.executions.get(&execution);
        let mut values = match rows {
            Some(rows) => load_values(&Journal { execution, rows }, needs)?,
            None => Values::default(),
        };
        for key in artifact_keys(needs) {
            let bytes = rows.and_then(|rows| disk.artifact(&rows.creation.origin.tenant, key));
            let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            values.artifacts.insert(key.clone(), value.map(Arc::new));
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
        let after = match after {
            Some(timer) => Some(TimerPlace::of(timer, disk.rows_of(timer.execution)?.key)),
            None => None,
        };
        let mut due = Vec::new();
        for (execution, rows) in &disk.executions {
            for (at, timer) in rows.timers(until)? {
                let timer = DueTimer { at, execution: *execution, timer };
                due.push((TimerPlace::of(&timer, rows.key), timer));
            }
        }
        due.retain(|(place, _)| *place > TimerPlace::resume(after.as_ref(), place.table));
        Ok(merge_timers(due, limit))
    }

    fn offers(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        let disk = self.disk();
        let place = after.map(|(id, run)| disk.rows_of(id).map(|rows| (rows.key, run))).transpose()?;
        let mut offers: Vec<((i64, RunId), Offer)> = Vec::new();
        for (id, rows) in &disk.executions {
            let open = rows.runs.iter().filter(|(_, stored)| stored.row.class == Class::Offered);
            for (run, stored) in open {
                let Some(fence) = stored.row.fence else { continue };
                let (lease, cursor) = (stored.lease, stored.cursor.clone());
                let (tenant, priority) =
                    (rows.creation.origin.tenant.clone(), rows.creation.origin.options.priority);
                let (execution, run, progress) = (*id, *run, stored.progress.clone());
                let offer = Offer { execution, run, fence, lease, cursor, progress, tenant, priority };
                offers.push(((rows.key, run), offer));
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
        let cut = disk.executions.iter().filter(|(_, rows)| rows.head.goes_on);
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
            None => Err(StoreError::Corrupt(format!("mail {} has no waiting sender", mail.0))),
        }
    }

    fn list(&mut self, query: &Query) -> Result<Vec<ListedExecution>, StoreError> {
        let disk = self.disk();
        let before = query.before.map(|id| disk.rows_of(id)).transpose()?.map(|rows| rows.key);
        let mut found: Vec<(i64, ListedExecution)> = disk
            .executions
            .iter()
            .filter(|(_, rows)| before.is_none_or(|before| rows.key < before))
            .map(|(id, rows)| (rows.key, disk.listed(*id, rows)))
            .filter(|(_, listed)| matches(query, listed))
            .collect();
        found.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        Ok(found.into_iter().take(query.limit).map(|(_, listed)| listed).collect())
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
        let versions = disk.versions(tenant, |definition| match which {
            Which::Name(name) => definition.name == *name,
            Which::Id(id) => definition.workflow == *id,
        });
        let meant = |found: &&&Arc<StoredDefinition>| version.is_none_or(|version| found.version == version);
        Ok(versions.iter().rev().find(meant).map(|definition| (***definition).clone()))
    }

    fn logs(
        &mut self,
        execution: ExecutionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        let disk = self.disk();
        let of = disk.logs.iter().filter(|(at, chunk)| **at > after && chunk.execution == execution);
        Ok(of.map(stored_log).take(limit).collect())
    }

    fn logs_before(
        &mut self,
        execution: ExecutionId,
        before: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        let disk = self.disk();
        let of = disk.logs.range(..before).rev().filter(|(_, chunk)| chunk.execution == execution);
        Ok(of.map(stored_log).take(limit).collect())
    }

    fn run_logs(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        let disk = self.disk();
        let of = disk
            .logs
            .iter()
            .filter(|(at, chunk)| **at > after && (chunk.execution, chunk.run) == (execution, run));
        Ok(of.map(stored_log).take(limit).collect())
    }

    fn rows(&mut self, execution: ExecutionId) -> Result<Option<Rows>, StoreError> {
        Ok(self.disk().executions.get(&execution).map(|rows| rows.rows()))
    }
}

/// An empty map in the form of state rows.
const NO_CONTEXT: [u8; 1] = [0x80];

impl Disk {
    /// Returns the execution that a list continues after.
    fn rows_of(&self, id: ExecutionId) -> Result<&ExecutionRows, StoreError> {
        let found = self.executions.get(&id).map(|rows| &**rows);
        found.ok_or_else(|| StoreError::Corrupt(format!("there is no execution {id} to continue after")))
    }

    pub(super) fn workflow(&self, creation: &Creation) -> Option<WorkflowId> {
        let definition = creation.origin.definition.and_then(|id| self.definitions.get(&id));
        definition.map(|definition| definition.workflow)
    }

    fn origin(&self, creation: &Creation) -> Origin {
        Origin { workflow: self.workflow(creation), key: None, ..(*creation.origin).clone() }
    }

    fn listed(&self, execution: ExecutionId, rows: &ExecutionRows) -> ListedExecution {
        let definition = rows.creation.origin.definition.and_then(|id| self.definitions.get(&id));
        let retries = self.executions.iter().filter(|(_, other)| {
            let origin = &other.creation.origin;
            origin.retry_of == Some(execution) && origin.tenant == rows.creation.origin.tenant
        });
        ListedExecution {
            quarantine: None,
            retried_by: retries.max_by_key(|(_, other)| other.key).map(|(id, _)| *id),
            execution,
            origin: self.origin(&rows.creation),
            name: definition.map(|definition| definition.name.clone()),
            version: definition.map(|definition| definition.version),
            dialect: definition.map(|definition| definition.dialect.clone()),
            phase: rows.head.phase,
            held: rows.head.held,
            created_at: rows.creation.at,
            at: rows.head.at,
        }
    }
}

impl Journaled {
    fn read(&self, execution: ExecutionId) -> Result<JournalRow, StoreError> {
        let records = open(execution, self.version, self.commit, &self.sealed)?;
        Ok(JournalRow { position: self.position, commit: self.commit, version: self.version, records })
    }
}

impl ExecutionRows {
    fn state(&self, id: ExecutionId) -> Result<Execution<'static>, StoreError> {
        let runs: Vec<_> = self.runs.iter().map(|(run, stored)| (*run, stored.row.clone())).collect();
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
        let run = |(run, stored): (&RunId, &Arc<super::StoredRun>)| RunRow {
            run: *run,
            before: None,
            after: Some(stored.row.clone()),
        };
        Rows {
            head: self.head.clone(),
            ctx: Some(self.ctx.clone().unwrap_or(NO_CONTEXT.to_vec())),
            runs: self.runs.iter().map(run).collect(),
            parts: self.part_rows(),
            facts: self.facts.iter().map(|(run, _)| *run).collect(),
        }
    }

    /// The row of a due column determines its kind of timer.
    fn timers(&self, until: Millis) -> Result<Vec<(Millis, Timer)>, StoreError> {
        let mut timers = Vec::new();
        let fires = |table| table_fires(table, self.head.held, self.head.phase);
        let due = |due: Option<Millis>| due.filter(|due| *due <= until);
        if fires(TimerTable::Heads) {
            timers.extend(due(self.head.due).map(|at| (at, head_timer(self.head.phase))));
        }
        if fires(TimerTable::Runs) {
            for (run, stored) in &self.runs {
                if let Some(at) = due(stored.row.due) {
                    timers.push((at, run_timer(*run, &stored.row.state)?));
                }
            }
        }
        if fires(TimerTable::Gates) {
            for ((_, key), entry) in &self.parts {
                if let Some(at) = due(entry.due) {
                    timers.push((at, gate_timer(key)?));
                }
            }
        }
        Ok(timers)
    }
}

/// Returns whether an execution belongs to a list, wherever the list begins.
fn matches(query: &Query, listed: &ListedExecution) -> bool {
    let Query { tenant, workflow, status, since, until, tag, correlation, parent, before: _, limit: _ } =
        query;
    let is_in = |status: Status| match status {
        Status::Open => !listed.phase.is_ended(),
        Status::Phase(phase) => phase == listed.phase,
        Status::In(phases) => phases.contains(&listed.phase),
    };
    tenant.as_ref().is_none_or(|tenant| *tenant == listed.origin.tenant)
        && workflow.is_none_or(|workflow| listed.origin.workflow == Some(workflow))
        && status.is_none_or(is_in)
        && since.is_none_or(|since| listed.created_at > since)
        && until.is_none_or(|until| listed.created_at < until)
        && tag.as_ref().is_none_or(|tag| listed.origin.options.tags.contains(tag))
        && correlation.as_ref().is_none_or(|id| listed.origin.options.correlation.as_ref() == Some(id))
        && parent.is_none_or(|parent| listed.origin.parent == Some(parent))
}

/// The journal of one execution.
struct Journal<'d> {
    execution: ExecutionId,
    rows: &'d ExecutionRows,
}

impl Journal<'_> {
    fn page(&self, from: u64, bounds: PageBounds) -> Result<JournalPage, StoreError> {
        let journal = &self.rows.journal;
        let first = journal.partition_point(|row| row.version <= from).saturating_sub(1);
        fill_page(&journal[first..], from, bounds, |row| {
            Ok((row.read(self.execution)?, row.sealed.bytes.len()))
        })
    }

    /// The number of the row at a position, or where it would be.
    fn index(&self, position: Position) -> usize {
        self.rows.journal.partition_point(|row| row.position < position)
    }
}

impl JournalLookup for Journal<'_> {
    fn fact_positions(&self, run: RunId) -> Result<Vec<Position>, StoreError> {
        let of_run = self.rows.facts.iter().filter(|(of, _)| *of == run);
        Ok(of_run.map(|(_, position)| *position).collect())
    }

    fn row_at(&self, position: Position) -> Result<JournalRow, StoreError> {
        let found = self.rows.journal.get(self.index(position)).filter(|row| row.position == position);
        let missing = || StoreError::Corrupt(format!("no journal row is at position {}", position.0));
        found.ok_or_else(missing)?.read(self.execution)
    }

    fn rows_from(&self, from: u64, bounds: PageBounds) -> Result<Vec<JournalRow>, StoreError> {
        Ok(self.page(from, bounds)?.rows)
    }

    fn row_before(&self, row: Option<&JournalRow>) -> Result<Option<JournalRow>, StoreError> {
        let end = row.map_or(self.rows.journal.len(), |row| self.index(row.position));
        end.checked_sub(1).map(|index| self.rows.journal[index].read(self.execution)).transpose()
    }
}

fn stored_log((position, chunk): (&Position, &Arc<LogChunk>)) -> StoredLog {
    StoredLog {
        position: *position,
        run: chunk.run,
        step: chunk.step.clone(),
        attempt: chunk.attempt,
        lines: chunk.lines.clone(),
    }
}
