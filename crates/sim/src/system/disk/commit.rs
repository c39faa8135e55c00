//! One commit on the disk: first everything that must hold, then its rows.

use super::{Disk, Entry, Journaled, Shelf, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{Millis, Record};
use windlass_store::{
    Applied, Class, Commit, Creation, Lease, LiveRun, PartRow, Position, RunRow, StoreError, seal,
};

impl Disk {
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Applied, StoreError> {
        sound(commit)?;
        if let Some(refused) = self.refusal(commit) {
            return Ok(refused);
        }
        let owner = self.executions.get(&commit.execution).map(|shelf| &shelf.creation);
        let owner = owner.or(commit.creation.as_ref()).map(|creation| creation.tenant.clone());
        for artifact in &commit.artifacts {
            owner.iter().for_each(|owner| self.keep(owner, artifact));
        }
        self.positions += 1;
        let position = Position(self.positions);
        let lax = self.lax;
        let mut shelf = match self.executions.remove(&commit.execution) {
            Some(shelf) => shelf,
            None => Arc::new(self.created(commit)?),
        };
        let rows = Arc::make_mut(&mut shelf);
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
        self.executions.insert(commit.execution, shelf);
        self.around(commit)?;
        Ok(Applied::Committed(position))
    }

    fn refusal(&self, commit: &Commit) -> Option<Applied> {
        match (self.executions.get(&commit.execution), &commit.creation) {
            (Some(_), Some(_)) => return Some(Applied::Duplicate),
            (None, None) => return Some(Applied::Conflict),
            (Some(shelf), None) if shelf.head.version != commit.expected => return Some(Applied::Conflict),
            (Some(shelf), None) => {
                let open = |(run, fence)| shelf.runs.get(run).is_some_and(|standing| standing.is_open(fence));
                let answered = commit.answered.iter().all(|(run, fence)| open((run, *fence)));
                if !answered && !self.lax.fences {
                    return Some(Applied::Fenced);
                }
            }
            (None, Some(_)) => {}
        }
        let consumed = commit.consumed.iter().all(|mail| self.is_open(*mail));
        (!consumed && !self.lax.mail).then_some(Applied::Duplicate)
    }

    fn created(&self, commit: &Commit) -> Result<Shelf, StoreError> {
        let Some(creation) = &commit.creation else {
            return Err(StoreError::Corrupt("only a creation makes rows of a new execution".into()));
        };
        let creation: Creation = creation.clone();
        let key = self.executions.len() as i64 + 1;
        let head = commit.rows.head.clone();
        let (runs, parts) = (BTreeMap::new(), BTreeMap::new());
        Ok(Shelf { key, creation, journal: Vec::new(), head, ctx: None, runs, parts, facts: Vec::new() })
    }

    /// What goes with the commit and is not of the state.
    fn around(&mut self, commit: &Commit) -> Result<(), StoreError> {
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
        for mail in &commit.consumed {
            self.close(*mail, Ok(()));
        }
        Ok(())
    }
}

impl Shelf {
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
        let found = self.runs.get(&row.run).map(|standing| standing.row.class);
        if found != row.before {
            let what = format!("step-run {:?} lies as {found:?}, the commit says {:?}", row.run, row.before);
            return Err(StoreError::Corrupt(what));
        }
        match &row.after {
            None => drop(self.runs.remove(&row.run)),
            Some(after) => {
                let before = self.runs.remove(&row.run);
                self.runs.insert(row.run, Arc::new(standing(before.as_deref(), after, lease)));
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

/// A lease goes with the offer it was given for; a new offer begins without one.
fn standing(before: Option<&Standing>, after: &LiveRun, lease: Option<&Lease>) -> Standing {
    let same = |before: &&Standing| {
        before.row.class == Class::Offered && after.class == Class::Offered && before.row.fence == after.fence
    };
    let kept = before.filter(same);
    Standing {
        row: after.clone(),
        lease: lease.copied().or_else(|| kept.and_then(|before| before.lease)),
        cursor: kept.and_then(|before| before.cursor.clone()),
    }
}

/// What the engine promises of every commit.
fn sound(commit: &Commit) -> Result<(), StoreError> {
    let leased = |lease: &Lease| {
        commit.rows.runs.iter().any(|row| {
            let open = |live: &LiveRun| live.class == Class::Offered && live.fence == Some(lease.fence);
            row.run == lease.run && row.after.as_ref().is_some_and(open)
        })
    };
    let promises = [
        (!commit.records.is_empty(), "has no records"),
        (
            commit.rows.head.version == commit.expected + commit.records.len() as u64,
            "counts its records wrong",
        ),
        ((commit.expected == 0) == commit.creation.is_some(), "creates what exists, or does not create"),
        (commit.leases.iter().all(leased), "leases what it does not offer"),
    ];
    match promises.iter().find(|(kept, _)| !kept) {
        Some((_, what)) => {
            Err(StoreError::Corrupt(format!("a commit of execution {} {what}", commit.execution)))
        }
        None => Ok(()),
    }
}
