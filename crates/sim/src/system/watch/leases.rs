//! Leases on disk, and the work that the workers run under them.

use super::journal::Shadow;
use crate::invariants::Broken;
use crate::rng::Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::net::{Affinity, Finish};
use windlass_kernel::{
    Answer, Event, ExecutionId, Fence, Millis, Phase, Record, Role, RunId, RunState, WorkResult,
};
use windlass_protocol::{SessionId, Unit, Work};
use windlass_store::{Applied, Lease, Reader, Session, Write};

type Shadows = BTreeMap<ExecutionId, Shadow>;

#[derive(Debug, Default)]
pub(in crate::system) struct Leases {
    granted: BTreeMap<Unit, u64>,
    /// Time of each lease by the wall clock.
    claimed: BTreeMap<Unit, Millis>,
    /// The engine's life in which each session was opened.
    sessions: BTreeMap<u64, u32>,
    /// The life that the engine is in.
    pub life: u32,
    begun: BTreeSet<Unit>,
    running: BTreeSet<Unit>,
    /// Units that never began, according to the engine's rows.
    never: BTreeSet<Unit>,
    /// Sessions of workers that ended in order and gave back what they had.
    left: BTreeSet<u64>,
    /// Work that is to stop, as far as the disk knows.
    owed: BTreeSet<Unit>,
    /// Calls that an accepted checkpoint says were made, by attempt.
    reached: BTreeMap<(ExecutionId, RunId, u32), u64>,
}

pub(super) fn parts(unit: Unit) -> (ExecutionId, RunId, Fence) {
    (ExecutionId(unit.execution), RunId(unit.run), Fence(unit.fence))
}

fn unit(execution: ExecutionId, run: RunId, fence: Fence) -> Unit {
    Unit { execution: execution.0, run: run.0, fence: fence.0 }
}

pub(super) fn is_open(shadows: &Shadows, unit: Unit) -> bool {
    let (execution, run, fence) = parts(unit);
    if unit.is_whole() {
        return shadows.get(&execution).is_some_and(|shadow| is_held_whole(shadow, fence));
    }
    let state = shadows.get(&execution).and_then(|shadow| shadow.state.run(run)).map(|run| &run.state);
    matches!(state, Some(RunState::Offered { fence: open }) if *open == fence)
}

/// A worker has taken the execution in this generation, as far as the disk knows.
fn is_held_whole(shadow: &Shadow, fence: Fence) -> bool {
    let is_taken = !matches!(shadow.state.phase(), Phase::Blank | Phase::Queued | Phase::Ended(_));
    is_taken && fence == Fence::first(shadow.state.head.generation)
}

/// Returns true if only the uploads of the execution are left. They need no worker, so nothing changes when a worker
/// releases the execution.
pub(super) fn awaits_uploads(shadows: &Shadows, unit: Unit) -> bool {
    let (execution, ..) = parts(unit);
    let awaits = |shadow: &Shadow| {
        shadow.state.phase() == Phase::Finalizing && shadow.net.policy().finish == Finish::Uploads
    };
    unit.is_whole() && shadows.get(&execution).is_some_and(awaits)
}

/// The whole execution that a step-run under this fence belongs to.
fn whole(unit: Unit) -> Unit {
    Unit { run: Unit::WHOLE, fence: Fence::first(unit.generation()).0, ..unit }
}

fn is_taken_whole(shadows: &Shadows, execution: ExecutionId) -> bool {
    shadows.get(&execution).is_some_and(|shadow| shadow.net.policy().affinity == Affinity::OneWorker)
}

/// The worker reported that the work continues later.
fn has_given_way(shadows: &Shadows, unit: Unit) -> bool {
    let (execution, run, fence) = parts(unit);
    let answer = shadows.get(&execution).and_then(|shadow| shadow.answers.get(&(run, fence)));
    matches!(answer, Some(Answer::Report { result: WorkResult::Later { .. }, .. }))
}

impl Leases {
    pub fn left(&mut self, session: SessionId) {
        self.left.insert(session.0);
    }

    pub fn opened(&mut self, session: SessionId) {
        self.sessions.insert(session.0, self.life);
    }

    pub fn written(&mut self, write: &Write, applied: Applied, shadows: &Shadows) -> Result<(), Broken> {
        match (write, applied) {
            (Write::Commit(commit), Applied::Committed(_)) => {
                for lease in &commit.leases {
                    self.grant(lease, shadows)?;
                }
                for stop in &commit.stops {
                    self.owed.insert(unit(stop.execution, stop.run, stop.fence));
                }
                for record in &*commit.records {
                    self.recorded(commit.execution, record)?;
                }
            }
            (Write::Lease(lease), Applied::Done) => {
                let unit = unit(lease.execution, lease.run, lease.fence);
                if !is_open(shadows, unit) {
                    return Err(Broken::new(
                        "K3",
                        format!("a lease was written for {unit:?}, which is not open"),
                    ));
                }
                self.grant(lease, shadows)?;
            }
            (Write::Stopped(stop), Applied::Done) => {
                let unit = unit(stop.execution, stop.run, stop.fence);
                if self.is_alive(unit) {
                    let what = format!("{unit:?} was called stopped while a worker runs it");
                    return Err(Broken::new("R7", what));
                }
                self.owed.remove(&unit);
            }
            (Write::Checkpoint { execution, run, fence, cursor }, Applied::Done) => {
                let unit = unit(*execution, *run, *fence);
                if !is_open(shadows, unit) || !self.granted.contains_key(&unit) {
                    let what = format!("a checkpoint was kept for {unit:?}, which is leased to no worker");
                    return Err(Broken::new("K3", what));
                }
                let attempt = attempt(shadows, *execution, *run);
                let made = self.reached.entry((*execution, *run, attempt)).or_default();
                *made = (*made).max(calls(Some(cursor)));
            }
            _ => {}
        }
        Ok(())
    }

    fn grant(&mut self, lease: &Lease, shadows: &Shadows) -> Result<(), Broken> {
        let unit = unit(lease.execution, lease.run, lease.fence);
        let is_step = is_taken_whole(shadows, lease.execution) && !unit.is_whole();
        if is_step && self.granted.get(&whole(unit)) != Some(&lease.session.0) {
            let what = format!("{unit:?} was leased to a worker that does not hold its execution");
            return Err(Broken::new("one worker", what));
        }
        self.claimed.insert(unit, lease.claimed_at);
        match self.granted.insert(unit, lease.session.0) {
            Some(other) if other != lease.session.0 => {
                Err(Broken::new("K3", format!("{unit:?} was leased to two sessions")))
            }
            _ => Ok(()),
        }
    }

    fn recorded(&mut self, execution: ExecutionId, record: &Record) -> Result<(), Broken> {
        let lost = |failure: &windlass_kernel::Failure| failure.has_code(windlass_kernel::codes::WORKER_LOST);
        match &record.event {
            Event::Lost { run, fence, started: false, .. } => {
                let unit = unit(execution, *run, *fence);
                self.never.insert(unit);
                if self.begun.contains(&unit) && !self.is_given_back(unit) {
                    let what = format!("{unit:?} was called lost before it began, and a worker had begun it");
                    return Err(Broken::new("lost, not started", what));
                }
            }
            Event::Lost { run, fence, started: true, .. } => self.gone(unit(execution, *run, *fence))?,
            // What the old generation still does was stopped, or its worker gave it up before.
            Event::Restarted { generation, .. } => {
                let is_old = |unit: &&Unit| unit.execution == execution.0 && unit.generation() < *generation;
                for unit in self.running.iter().filter(is_old).filter(|unit| !self.owed.contains(unit)) {
                    self.gone(*unit)?;
                }
            }
            Event::RetryScheduled { run, fence: Some(fence), failure, reported: false, .. }
            | Event::Failed { run, fence: Some(fence), failure, reported: false, .. }
                if lost(failure) =>
            {
                self.gone(unit(execution, *run, *fence))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a lease that expired: its worker must have ended the work before. Leases of an engine that died are
    /// revoked at once; later reports of their workers change nothing.
    fn gone(&self, unit: Unit) -> Result<(), Broken> {
        if self.is_alive(unit) {
            return Err(Broken::new(
                "a lease outlived",
                format!("the lease of {unit:?} ended while it runs"),
            ));
        }
        Ok(())
    }

    /// Returns whether its worker ended in order, or with the engine that assigned the work: then it may have begun.
    fn is_given_back(&self, unit: Unit) -> bool {
        let Some(session) = self.granted.get(&unit) else { return false };
        self.left.contains(session) || self.sessions.get(session) != Some(&self.life)
    }

    /// A worker of this life of the engine runs it.
    fn is_alive(&self, unit: Unit) -> bool {
        let life = self.granted.get(&unit).and_then(|session| self.sessions.get(session));
        self.running.contains(&unit) && life == Some(&self.life)
    }

    /// Checks an order to run: the offer is open on disk, is leased to that session, and continues at its last
    /// checkpoint.
    pub fn ordered(&self, session: SessionId, work: &Work, shadows: &Shadows) -> Result<(), Broken> {
        let unit = work.unit;
        if !is_open(shadows, unit) || self.granted.get(&unit) != Some(&session.0) {
            let what = format!("{unit:?} was handed out, and its lease is not on disk");
            return Err(Broken::new("K7", what));
        }
        let (execution, run, fence) = parts(unit);
        let shadow = shadows.get(&execution);
        let stopped = |event: &Event| match event {
            Event::StopAsked { leases, .. } => leases.contains(&(run, fence)),
            _ => false,
        };
        if shadow.is_some_and(|shadow| shadow.records().any(|record| stopped(&record.event))) {
            return Err(Broken::new("stopped work", format!("{unit:?} is to stop and was handed out")));
        }
        // A repeated order is for a worker that did not receive the first one.
        if self.begun.contains(&unit) {
            return Ok(());
        }
        let attempt = attempt(shadows, execution, run);
        let made = self.reached.get(&(execution, run, attempt)).copied().unwrap_or(0);
        if calls(work.cursor.as_deref()) < made {
            let what = format!(
                "{unit:?} begins after {} calls, and a checkpoint of {made} was kept",
                calls(work.cursor.as_deref())
            );
            return Err(Broken::new("R14", what));
        }
        Ok(())
    }

    /// No attempt of this life of the engine had to be over before that moment and is open.
    pub fn attempts_are_on_time(&self, before: Millis, shadows: &Shadows) -> Result<(), Broken> {
        for (unit, claimed) in &self.claimed {
            let life = self.granted.get(unit).and_then(|session| self.sessions.get(session));
            if life != Some(&self.life) || !is_open(shadows, *unit) {
                continue;
            }
            let (execution, run, _) = parts(*unit);
            let timeout_ms = shadows.get(&execution).and_then(|shadow| {
                let run = shadow.state.run(run)?;
                let step = shadow.net.step(run.step);
                match (&run.role, &step.compensation) {
                    (Role::Hook { .. }, Some(hook)) => hook.timeout_ms,
                    _ => step.timeout_ms,
                }
            });
            if timeout_ms.is_some_and(|timeout_ms| claimed.plus(timeout_ms) < before) {
                let what = format!("{unit:?} was given at {} for {timeout_ms:?} ms", claimed.0);
                return Err(Broken::new("attempts on time", what));
            }
        }
        Ok(())
    }

    /// A worker begins what a life of the engine ordered. If that has died since, it may not know that others went on.
    pub fn begin(&mut self, unit: Unit, ordered_in: u32, shadows: &Shadows) -> Result<(), Broken> {
        let (execution, run, _) = parts(unit);
        let done = shadows.get(&execution).is_some_and(|shadow| shadow.done.contains(&run));
        // An order that was long on its way may come when its attempt is over and others went on; as long as the engine
        // knows that it has to be stopped, that is no surprise.
        let stray = ordered_in != self.life || self.owed.contains(&unit);
        if done && !stray {
            return Err(Broken::new("done once", format!("{unit:?} is done on disk and runs again")));
        }
        if self.never.contains(&unit) && !stray {
            let what = format!("{unit:?} was reported lost before it began, and now it begins");
            return Err(Broken::new("lost, not started", what));
        }
        if !self.begun.insert(unit) {
            return Err(Broken::new("begun once", format!("{unit:?} was begun twice")));
        }
        // A step of an execution that restarts as a whole has one attempt in a generation. It continues if it released
        // its slot for a while.
        let again = |other: &Unit| {
            (other.execution, other.run) == (unit.execution, unit.run)
                && *other != unit
                && !has_given_way(shadows, *other)
        };
        if is_taken_whole(shadows, execution) && !unit.is_whole() && self.begun.iter().any(again) {
            let what = format!("{unit:?} was begun before in the same generation");
            return Err(Broken::new("once in a generation", what));
        }
        self.running.insert(unit);
        Ok(())
    }

    pub fn end(&mut self, unit: Unit) {
        self.running.remove(&unit);
    }

    pub fn straggler(&self, shadows: &Shadows, rng: &mut Rng) -> Option<Vec<Write>> {
        let units: Vec<Unit> = self.granted.keys().copied().collect();
        let chosen = *units.get(rng.index(units.len()))?;
        let (execution, run, fence) = parts(chosen);
        let at = Millis(0);
        let session = Session(rng.bits());
        let lease = Lease { execution, run, fence, session, claimed_at: at, started_at: Some(at) };
        let mut writes = vec![Write::Lease(lease)];
        if !is_open(shadows, chosen) {
            let cursor = Arc::new(json!({ "calls": 99 }));
            writes.push(Write::Checkpoint { execution, run, fence, cursor });
        }
        Some(writes)
    }

    /// The disk after a crash: leases and cursors that were acknowledged are there.
    pub fn recovered(&mut self, reader: &mut impl Reader, shadows: &Shadows) -> Result<(), Broken> {
        let stops = reader.stops(None, usize::MAX >> 1).map_err(super::store)?;
        self.owed = stops.iter().map(|stop| unit(stop.execution, stop.run, stop.fence)).collect();
        let mut leases = Vec::new();
        for offer in reader.offers(None, usize::MAX >> 1).map_err(super::store)? {
            let unit = unit(offer.execution, offer.run, offer.fence);
            match (&offer.lease, self.granted.get(&unit)) {
                (Some(lease), _) => leases.push(*lease),
                (None, Some(_)) => {
                    return Err(Broken::new("durability", format!("the lease of {unit:?} is gone")));
                }
                (None, None) => {}
            }
            let attempt = attempt(shadows, offer.execution, offer.run);
            let before = shadows
                .get(&offer.execution)
                .and_then(|shadow| shadow.state.run(offer.run))
                .and_then(|run| run.cursor.as_deref());
            let made = self.reached.get(&(offer.execution, offer.run, attempt)).copied().unwrap_or(0);
            if calls(offer.cursor.as_deref()).max(calls(before)) < made {
                return Err(Broken::new("durability", format!("a checkpoint of {unit:?} is gone")));
            }
        }
        // The lease of an execution comes before those of its steps, in any order on disk.
        leases.sort_by_key(|lease| std::cmp::Reverse(lease.run));
        leases.iter().try_for_each(|lease| self.grant(lease, shadows))
    }
}

/// Counts the leases of the batch in transit when the engine died: those on disk, and those that are not.
pub(super) fn survivors(
    outstanding: &[Write],
    kept_commits: bool,
    reader: &mut impl Reader,
) -> Result<(usize, usize), Broken> {
    let offers = reader.offers(None, usize::MAX >> 1).map_err(super::store)?;
    let (mut kept, mut lost) = (0, 0);
    let leases = outstanding.iter().flat_map(|write| match write {
        Write::Lease(lease) => vec![*lease],
        Write::Commit(commit) if kept_commits => commit.leases.clone(),
        _ => Vec::new(),
    });
    for lease in leases {
        let place = (lease.execution, lease.run, lease.fence);
        let offer = offers.iter().find(|offer| (offer.execution, offer.run, offer.fence) == place);
        match offer.map(|offer| offer.lease) {
            Some(Some(found)) => kept += usize::from(found.session == lease.session),
            Some(None) => lost += 1,
            None => {}
        }
    }
    Ok((kept, lost))
}

/// Attempts that continue where the last one ended count as one.
fn attempt(shadows: &Shadows, execution: ExecutionId, run: RunId) -> u32 {
    let Some(shadow) = shadows.get(&execution) else { return 0 };
    let Some(run) = shadow.state.run(run) else { return 0 };
    if shadow.net.step(run.step).retry.resumes { 0 } else { run.attempts + 1 }
}

/// Maximum number of checkpoints of an agent within one call.
const KEPT_MAX: u64 = 1_000;

/// Returns the progress of a pipeline: the calls it has made, and the checkpoints of an agent since.
pub(super) fn calls(cursor: Option<&Value>) -> u64 {
    // Next to the end of another execution, the cursor is as the pipeline left it.
    let Some(cursor) = cursor.map(|cursor| cursor.get("then").unwrap_or(cursor)) else { return 0 };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    number(&cursor["calls"]) * KEPT_MAX + number(&cursor["memo"]["kept"])
}
