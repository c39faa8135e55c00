//! The oracle of the system. It sees what everyone could see: what is on disk after each write, what the engine says
//! to whom, what workers begin and end. From the journals it keeps a shadow of every execution, and measures every
//! word of the engine by it.

mod agents;
mod answers;
mod journal;
mod leases;
mod mail;
mod memory;

pub(super) use memory::{Ask, Memory, Wish, at};

use super::definitions::SAGA;
use crate::invariants::Broken;
use crate::saga;
use journal::Shadow;
use leases::Leases;
use mail::Mailbook;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{Event, ExecutionId, Millis, Net, NetDigest, Phase, Timer};
use windlass_store::{Applied, Definition, Query, Reader, StoreError, Write};

/// Executions of one world, at most; a world with more is not what was planned.
const EXECUTIONS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Watch {
    nets: BTreeMap<NetDigest, Arc<Net>>,
    /// Nets of actions, whose executions are judged as sagas when they have ended.
    sagas: BTreeSet<NetDigest>,
    shadows: BTreeMap<ExecutionId, Shadow>,
    pub leases: Leases,
    pub mail: Mailbook,
    pub commits: u64,
}

impl Watch {
    pub fn knows(&mut self, definition: &Definition) {
        let net = &definition.net;
        self.nets.insert(net.digest(), net.clone());
        if definition.dialect == SAGA {
            self.sagas.insert(net.digest());
        }
    }

    /// Sagas that hooks were run for.
    pub fn undone_sagas(&self) -> u64 {
        let undone = |shadow: &&Shadow| {
            self.sagas.contains(&shadow.net.digest())
                && shadow.records().any(|record| matches!(record.event, Event::Compensating))
        };
        self.shadows.values().filter(undone).count() as u64
    }

    /// A batch is on disk. Whether the engine knows is another matter.
    pub fn synced(
        &mut self,
        batch: &[Write],
        applied: &[Applied],
        reader: &mut impl Reader,
    ) -> Result<(), Broken> {
        if batch.len() != applied.len() {
            return Err(Broken::new("store", "a batch was answered for another number of writes"));
        }
        for (write, applied) in batch.iter().zip(applied) {
            match (write, applied) {
                (Write::Commit(commit), Applied::Committed(_)) => {
                    self.commits += 1;
                    mail::goes_with(commit, &self.shadows)?;
                    let new = self.look(commit.execution, reader)?;
                    if new != commit.records.len() {
                        let what =
                            format!("a commit of {} records left {new} in the journal", commit.records.len());
                        return Err(Broken::new("K1", what));
                    }
                }
                (Write::Commit(commit), refused) => {
                    let what = format!(
                        "{refused:?} for a commit of {}, although there is no other writer",
                        commit.execution
                    );
                    return Err(Broken::new("one writer", what));
                }
                _ => {}
            }
            self.leases.written(write, *applied, &self.shadows)?;
        }
        self.mail.written(batch, applied, reader)
    }

    /// Checks the disk after a crash: no row is lost, and only rows of the batch in progress may have been added.
    pub fn recovered(
        &mut self,
        outstanding: Option<&[Write]>,
        reader: &mut impl Reader,
    ) -> Result<(), Broken> {
        for (id, shadow) in &self.shadows {
            shadow.is_prefix_of(*id, &whole(reader, *id)?)?;
        }
        let outstanding = outstanding.unwrap_or_default();
        let (mut kept, mut lost) = (0, 0);
        for write in outstanding {
            let Write::Commit(commit) = write else { continue };
            match self.look(commit.execution, reader)? {
                0 => lost += 1,
                _ => kept += 1,
            }
        }
        let (leases, no_leases) = leases::survivors(outstanding, kept > 0, reader)?;
        let (settled, not_settled) = self.mail.survivors(outstanding, reader)?;
        kept += leases + settled;
        lost += no_leases + not_settled;
        if kept > 0 && lost > 0 {
            let what = format!("{kept} writes of a batch survived a crash and {lost} did not");
            return Err(Broken::new("all or nothing", what));
        }
        let listed = stored(reader)?;
        if let Some(id) = listed.iter().find(|id| !self.shadows.contains_key(id)) {
            return Err(Broken::new("durability", format!("execution {id} came from nowhere")));
        }
        for id in self.shadows.keys().copied().collect::<Vec<_>>() {
            self.look(id, reader)?;
        }
        self.leases.recovered(reader, &self.shadows)?;
        self.mail.recovered(outstanding, kept > 0, reader)
    }

    /// Reads the new records of the journal and compares the rows with them. Returns how many records came.
    fn look(&mut self, id: ExecutionId, reader: &mut impl Reader) -> Result<usize, Broken> {
        let known = self.shadows.get(&id).map_or(0, Shadow::version);
        let rows = reader.journal(id, known, usize::MAX).map_err(store)?;
        let records: Vec<_> = rows
            .into_iter()
            .flat_map(|row| (row.version..).zip(row.records))
            .filter(|(version, _)| *version >= known)
            .map(|(_, record)| record)
            .collect();
        let Some(first) = records.first() else { return Ok(0) };
        let shadow = match self.shadows.entry(id) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(slot) => slot.insert(Shadow::new(first, &self.nets)?),
        };
        let count = records.len();
        for record in records {
            shadow.add(record)?;
        }
        shadow.holds(id, reader)?;
        Ok(count)
    }

    /// Nothing was due before that moment and has not been rung; no attempt has run longer than it may. What came due under a
    /// hold is due when the hold is released. A start that is due may wait for a slot; that it happens is shown by the end of
    /// the world.
    pub fn timers_are_on_time(&self, before: Millis) -> Result<(), Broken> {
        self.leases.attempts_are_on_time(before, &self.shadows)?;
        for (id, shadow) in &self.shadows {
            let is_late = |(timer, at): &(Timer, Millis)| {
                *at < before && *timer != Timer::Start && shadow.released_at() < before
            };
            if let Some((timer, at)) = shadow.state.timers().into_iter().find(is_late) {
                let what = format!("{timer:?} of {id} was due at {}, and it is {} now", at.0, before.0);
                return Err(Broken::new("timers on time", what));
            }
        }
        Ok(())
    }

    pub fn phase(&self, id: ExecutionId) -> Option<Phase> {
        self.shadows.get(&id).map(|shadow| shadow.state.phase())
    }

    pub fn version(&self, id: ExecutionId) -> u64 {
        self.shadows.get(&id).map_or(0, Shadow::version)
    }

    pub fn ids(&self) -> impl Iterator<Item = ExecutionId> {
        self.shadows.keys().copied()
    }

    /// Executions by their outcome.
    pub fn ends(&self) -> BTreeMap<String, u64> {
        let mut ends = BTreeMap::new();
        for shadow in self.shadows.values() {
            let end = match shadow.state.phase() {
                Phase::Ended(outcome) => format!("{outcome:?}").to_lowercase(),
                phase => format!("left {phase:?}").to_lowercase(),
            };
            *ends.entry(end).or_default() += 1;
        }
        ends
    }

    pub fn records(&self) -> impl Iterator<Item = &windlass_kernel::Record> {
        self.shadows.values().flat_map(Shadow::records)
    }

    /// Lists unfinished work. In a kind world every execution must end (K8).
    pub fn unrest(&self, reader: &mut impl Reader) -> Result<Vec<String>, Broken> {
        let mut left = Vec::new();
        for (id, shadow) in &self.shadows {
            if !shadow.state.phase().is_ended() {
                left.push(format!("execution {id} is {:?}: {}", shadow.state.phase(), shadow.waits_for()));
            }
        }
        let mail = reader.inbox(None, EXECUTIONS_MAX).map_err(store)?;
        left.extend(mail.iter().map(|mail| format!("mail {} to {} is in the inbox", mail.id.0, mail.to)));
        let stops = reader.stops(None, EXECUTIONS_MAX).map_err(store)?;
        left.extend(stops.iter().map(|stop| {
            format!(
                "step-run {:?} of {} was ordered to stop, and it was not reported as stopped",
                stop.run, stop.execution
            )
        }));
        Ok(left)
    }

    /// Reads the whole disk again at the end, from its first record on.
    pub fn over(&self, reader: &mut impl Reader) -> Result<(), Broken> {
        for (id, shadow) in &self.shadows {
            let journal = whole(reader, *id)?;
            shadow.is_prefix_of(*id, &journal)?;
            shadow.replays(*id, &journal)?;
            if self.sagas.contains(&shadow.net.digest()) {
                saga::judge_net(&shadow.net, &journal)?;
            }
        }
        self.mail.over(&self.shadows)
    }
}

fn whole(reader: &mut impl Reader, id: ExecutionId) -> Result<Vec<windlass_kernel::Record>, Broken> {
    windlass_engine::journal(reader, id).map_err(store)
}

fn stored(reader: &mut impl Reader) -> Result<Vec<ExecutionId>, Broken> {
    let query = Query { limit: EXECUTIONS_MAX, ..Query::default() };
    Ok(reader.list(&query).map_err(store)?.into_iter().map(|listed| listed.execution).collect())
}

fn store(error: StoreError) -> Broken {
    Broken::new("store", error.to_string())
}
