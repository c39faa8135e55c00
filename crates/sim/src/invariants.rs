//! Invariants of the kernel's own state, checked after every record: K1, K2, K4, K5, K12, and that the counters
//! agree with what they count. The oracle looks from outside; this looks inside.

use std::hash::{DefaultHasher, Hash, Hasher};
use windlass_kernel::*;

/// A broken rule.
#[derive(Debug, Clone)]
pub struct Broken {
    pub rule: String,
    pub what: String,
}

impl Broken {
    pub fn new(rule: impl Into<String>, what: impl Into<String>) -> Broken {
        Broken { rule: rule.into(), what: what.into() }
    }
}

#[derive(Debug, Default)]
pub struct Invariants {
    /// The state's hash after each record, for the replay of every prefix.
    hashes: Vec<u64>,
    /// Number of used tokens. It is below zero after a fork that has tokens counted before it.
    used_tokens: i64,
    ended: bool,
    at: i64,
}

impl Invariants {
    pub fn after(&mut self, state: &Execution<'_>, record: &Record, net: &Net) -> Result<(), Broken> {
        self.time(record)?;
        self.terminal(state)?;
        self.tokens(state, record)?;
        counters(state, net)?;
        branches(state, net)?;
        self.hashes.push(hash(state));
        Ok(())
    }

    fn time(&mut self, record: &Record) -> Result<(), Broken> {
        if record.at.0 < self.at {
            return Err(Broken::new("K12", format!("time falls from {} to {}", self.at, record.at.0)));
        }
        self.at = record.at.0;
        Ok(())
    }

    fn terminal(&mut self, state: &Execution<'_>) -> Result<(), Broken> {
        if self.ended {
            return Err(Broken::new("K2", "a record after the end"));
        }
        self.ended = state.phase().is_ended();
        if self.ended && (!state.runs.is_empty() || standing(state) > 0) {
            return Err(Broken::new("K5", "ended, but not quiet"));
        }
        Ok(())
    }

    /// Checks that every token that was ever enabled is unused, was used by one firing, or was discarded.
    fn tokens(&mut self, state: &Execution<'_>, record: &Record) -> Result<(), Broken> {
        match &record.event {
            Event::Fired { token: Some(_), .. } | Event::Skipped { .. } | Event::Discarded { .. } => {
                self.used_tokens += 1;
            }
            Event::Joined { tokens, .. } => self.used_tokens += tokens.len() as i64,
            Event::Cleared(cleared) => self.used_tokens += cleared.tokens.len() as i64,
            Event::Restarted { .. } => self.used_tokens = 0,
            Event::Forked(_) => self.used_tokens = -(standing(state) as i64),
            _ => {}
        }
        // Records that a retry takes over come before the start; their tokens are counted from there on.
        if state.phase() == Phase::Queued {
            return Ok(());
        }
        let standing = standing(state) as i64;
        let enabled = state.head.next_token.number() as i64;
        if enabled != self.used_tokens + standing {
            let what = format!("{enabled} tokens, {} used, {standing} standing", self.used_tokens);
            return Err(Broken::new("K4", what));
        }
        Ok(())
    }

    /// Every prefix of the journal, written down and read back, replays to the state it had then (K1).
    pub fn replays(&self, net: &Net, journal: &[Record], state: &Execution<'_>) -> Result<(), Broken> {
        let text = serde_json::to_vec(journal).map_err(|error| Broken::new("K1", error.to_string()))?;
        let read: Vec<Record> =
            serde_json::from_slice(&text).map_err(|error| Broken::new("K1", error.to_string()))?;
        let mut again = Execution::default();
        for (number, record) in read.iter().enumerate() {
            evolve(&mut again, net, record).map_err(|illegal| Broken::new("K1", illegal.to_string()))?;
            if self.hashes.get(number) != Some(&hash(&again)) {
                return Err(Broken::new(
                    "K1",
                    format!("the prefix of {} records replays to another state", number + 1),
                ));
            }
        }
        if again == *state {
            Ok(())
        } else {
            Err(Broken::new("K1", "the whole journal replays to another state"))
        }
    }
}

fn standing(state: &Execution<'_>) -> usize {
    state.arrived.len() + state.gated.len() + state.joining.len()
}

/// The branches of each join step, counted anew from tokens and step-runs.
fn branches(state: &Execution<'_>, net: &Net) -> Result<(), Broken> {
    let counted = &state.head.branches;
    let tokens = state.arrived.values().chain(state.gated.values().map(|gate| &gate.token));
    let runs = state.runs.values().filter(|run| run.role == Role::Routed);
    let live: Vec<StepId> = tokens.map(|token| token.step).chain(runs.map(|run| run.step)).collect();
    for (number, (join, counted)) in net.join_steps().iter().zip(counted).enumerate() {
        let reaches = |step: &&StepId| leads_to(net, **step, *join);
        let waits = |step: StepId| state.joining.keys().filter(|(at, _)| *at == step).count();
        let others = net.join_steps().iter().filter(|other| *other != join && waits(**other) > 0);
        let coming = live.iter().filter(reaches).count() + others.filter(reaches).count();
        if (counted.coming as usize, counted.waiting as usize) != (coming, waits(*join)) {
            let what = format!("join {number} counts {counted:?}, but {coming} come, {} wait", waits(*join));
            return Err(Broken::new("census", what));
        }
    }
    Ok(())
}

/// Whether one arc or more lead from a step to another.
fn leads_to(net: &Net, from: StepId, to: StepId) -> bool {
    let next = net.step(from).router.arcs.iter().map(|arc| arc.to);
    next.into_iter().any(|next| net.descendants(next).contains(&to))
}

fn hash(state: &Execution<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

fn counters(state: &Execution<'_>, net: &Net) -> Result<(), Broken> {
    let census = &state.head.census;
    let count = |kind: Kind| state.runs.values().filter(|run| run.state.kind() == kind).count() as u32;
    let counted = [
        (census.ready, Kind::Ready),
        (census.waiting, Kind::Waiting),
        (census.delayed, Kind::Delayed),
        (census.offered, Kind::Offered),
        (census.backoff, Kind::Backoff),
        (census.manual, Kind::Manual),
        (census.children, Kind::Child),
        (census.paused_children, Kind::PausedChild),
        (census.looping, Kind::Looping),
    ];
    // Work of iterations that a retry runs again waits outside of the lists of live work.
    let parked: usize = state.parked.values().map(|parked| parked.ready.len()).sum();
    for (counted, kind) in counted {
        let aside = if kind == Kind::Ready { parked as u32 } else { 0 };
        if counted + aside != count(kind) {
            return Err(Broken::new(
                "census",
                format!("{counted} {kind:?} are counted, but {} exist", count(kind)),
            ));
        }
    }
    if state.ready.len() != census.ready as usize {
        return Err(Broken::new("census", "the ready list and the ready step-runs differ"));
    }
    let open_loops = state.runs.iter().filter(|(_, run)| match (&run.state, &net.step(run.step).repeat) {
        (RunState::Looping(repeat), Some(spec)) => repeat.open < spec.cap && repeat.has_more(),
        _ => false,
    });
    let is_parked = |id: &&RunId| state.parked.values().any(|parked| parked.loops.contains(id));
    // A loop that was taken over without its end is listed until it ends.
    let is_over = |id: &&RunId| match state.run(**id).map(|run| &run.state) {
        Some(RunState::Looping(repeat)) => repeat.open == 0 && !repeat.has_more(),
        _ => false,
    };
    let hungry = state.hungry.keys().filter(|id| !is_over(id));
    if !open_loops.map(|(id, _)| id).filter(|id| !is_parked(id)).eq(hungry) {
        return Err(Broken::new("census", "the list of hungry loops is wrong"));
    }
    Ok(())
}
