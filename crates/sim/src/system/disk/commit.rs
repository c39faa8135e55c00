//! One commit on the disk: first its checks, then its rows.

use super::{Disk, Entry, ExecutionRows, Journaled, StoredRun};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{Fence, Millis, Record, RunId};
use windlass_store::rules::{
    CommitFacts, CommitVerdict, KeyHolder, MailEnding, MailFacts, find_broken_promise, judge_commit,
    keeps_lease,
};
use windlass_store::{
    Applied, Commit, Creation, IdempotencyKey, Lease, LiveRun, MailId, PartRow, Position, RunRow, StoreError,
    seal,
};

/// Facts for the rules about one commit.
struct Lookups<'d> {
    disk: &'d Disk,
    commit: &'d Commit,
}

impl Lookups<'_> {
    fn rows(&self) -> Option<&ExecutionRows> {
        self.disk.executions.get(&self.commit.execution).map(|rows| &**rows)
    }
}

impl CommitFacts for Lookups<'_> {
    fn exists(&mut self) -> Result<bool, StoreError> {
        Ok(self.rows().is_some())
    }

    fn version(&mut self) -> Result<u64, StoreError> {
        Ok(self.rows().map_or(0, |rows| rows.head.version))
    }

    fn open_fence(&mut self, run: RunId) -> Result<Option<Fence>, StoreError> {
        if self.disk.lax.fences {
            let answered = self.commit.answered.iter().find(|(of, _)| *of == run);
            return Ok(answered.map(|(_, fence)| *fence));
        }
        let offer = self.rows().and_then(|rows| rows.runs.get(&run)).and_then(|run| run.offer());
        Ok(offer.and_then(|offer| offer.fence))
    }

    fn key_holder(
        &mut self,
        creation: &Creation,
        key: &IdempotencyKey,
    ) -> Result<Option<KeyHolder>, StoreError> {
        let Some(workflow) = self.disk.workflow(creation) else { return Ok(None) };
        let holds = |rows: &&Arc<ExecutionRows>| {
            rows.creation.origin.key.as_ref().is_some_and(|held| held.key == key.key)
                && self.disk.workflow(&rows.creation) == Some(workflow)
        };
        let newest = self.disk.executions.values().filter(holds).max_by_key(|rows| rows.key);
        Ok(newest.map(|rows| KeyHolder { phase: rows.head.phase, at: rows.head.at }))
    }

    fn mail(&mut self, mail: MailId) -> Result<Option<MailFacts>, StoreError> {
        let open = MailFacts { wants_answer: false, settled: false };
        Ok(if self.disk.lax.mail { Some(open) } else { self.disk.mail_facts(mail) })
    }
}

impl Disk {
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Applied, StoreError> {
        if let Some(broken) = find_broken_promise(commit) {
            let what = format!("a commit of execution {} must not be written: {broken}", commit.execution);
            return Err(StoreError::Corrupt(what));
        }
        let mut endings = Vec::new();
        let verdict = judge_commit(commit, &mut Lookups { disk: self, commit }, &mut endings)?;
        if let CommitVerdict::Refuse(applied) = verdict {
            return Ok(applied);
        }
        let owner = self.executions.get(&commit.execution).map(|rows| &rows.creation);
        let owner = owner.or(commit.creation.as_ref()).map(|creation| creation.origin.tenant.clone());
        for artifact in &commit.artifacts {
            owner.iter().for_each(|owner| self.keep(owner, artifact));
        }
        self.positions += 1;
        let position = Position(self.positions);
        let lax = self.lax;
        let mut execution = match self.executions.remove(&commit.execution) {
            Some(rows) => rows,
            None => Arc::new(self.created(commit)?),
        };
        let rows = Arc::make_mut(&mut execution);
        if !(lax.drops_journal && self.positions % 7 == 0) {
            rows.append(commit, position, lax.old_times);
        }
        rows.head = commit.rows.head.clone();
        if let Some(ctx) = &commit.rows.ctx {
            rows.ctx = Some(ctx.clone());
        }
        for row in &commit.rows.runs {
            rows.run(row, commit.leases.iter().find(|lease| lease.run == row.run))?;
        }
        let skipped = usize::from(lax.drops_rows && self.positions % 5 == 0);
        for row in commit.rows.parts.iter().skip(skipped) {
            rows.part(row)?;
        }
        for run in &commit.rows.facts {
            if !rows.facts.contains(&(*run, position)) {
                rows.facts.push((*run, position));
            }
        }
        self.executions.insert(commit.execution, execution);
        self.around(commit, &endings)?;
        Ok(Applied::Committed(position))
    }

    fn created(&self, commit: &Commit) -> Result<ExecutionRows, StoreError> {
        let Some(creation) = &commit.creation else {
            return Err(StoreError::Corrupt("only a creation makes rows of a new execution".into()));
        };
        let creation: Creation = creation.clone();
        let key = self.executions.len() as i64 + 1;
        let head = commit.rows.head.clone();
        let (runs, parts) = (BTreeMap::new(), BTreeMap::new());
        Ok(ExecutionRows {
            key,
            creation,
            journal: Vec::new(),
            head,
            ctx: None,
            runs,
            parts,
            facts: Vec::new(),
        })
    }

    /// Writes what belongs to the commit but not to the state.
    fn around(&mut self, commit: &Commit, endings: &[MailEnding]) -> Result<(), StoreError> {
        for stop in &commit.stops {
            if self.stops.insert((stop.execution, stop.run, stop.fence), *stop).is_some() {
                return Err(StoreError::Corrupt("a stop that is owed is owed again".into()));
            }
        }
        for mail in &commit.mail {
            self.accept(mail);
            if self.lax.mail_twice {
                self.accept(mail);
            }
        }
        for (mail, ending) in commit.consumed.iter().zip(endings) {
            self.close(*mail, *ending, Ok(()));
        }
        Ok(())
    }
}

impl ExecutionRows {
    fn append(&mut self, commit: &Commit, position: Position, old_times: bool) {
        let dated = |record: &Record| Record { at: Millis(record.at.0 - 90_000), ..record.clone() };
        let records = match old_times && position.0 % 6 == 0 {
            true => Arc::new(commit.records.iter().map(dated).collect()),
            false => commit.records.clone(),
        };
        let (version, id) = (commit.expected, commit.id);
        let sealed = seal(commit.execution, version, id, &records);
        self.journal.push(Arc::new(Journaled { position, commit: id, version, sealed }));
    }

    fn run(&mut self, row: &RunRow, lease: Option<&Lease>) -> Result<(), StoreError> {
        let found = self.runs.get(&row.run).map(|run| run.row.class);
        if found != row.before {
            let what =
                format!("step-run {:?} is stored as {found:?}, the commit expects {:?}", row.run, row.before);
            return Err(StoreError::Corrupt(what));
        }
        match &row.after {
            None => drop(self.runs.remove(&row.run)),
            Some(after) => {
                let before = self.runs.remove(&row.run);
                self.runs.insert(row.run, Arc::new(changed(before.as_deref(), after, lease)));
            }
        }
        Ok(())
    }

    fn part(&mut self, row: &PartRow) -> Result<(), StoreError> {
        let key = (row.part, row.key.clone());
        match &row.value {
            Some(value) => {
                self.parts.insert(key, Arc::new(Entry { due: row.due, value: value.clone() }));
            }
            None if self.parts.remove(&key).is_none() => {
                let what = format!("an entry of {:?} that went is not in the rows", row.part);
                return Err(StoreError::Corrupt(what));
            }
            None => {}
        }
        Ok(())
    }
}

fn changed(before: Option<&StoredRun>, after: &LiveRun, lease: Option<&Lease>) -> StoredRun {
    let place = |row: &LiveRun| (row.class, row.fence);
    let kept = before.filter(|before| keeps_lease(place(&before.row), place(after)));
    StoredRun {
        row: after.clone(),
        lease: lease.copied().or_else(|| kept.and_then(|before| before.lease)),
        cursor: kept.and_then(|before| before.cursor.clone()),
        progress: kept.and_then(|before| before.progress.clone()),
    }
}
