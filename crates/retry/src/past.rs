//! The firings of an ended execution, read from its journal for a retry.

use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::Join;
use windlass_kernel::{
    BranchEnd, Created, Event, Execution, ExecutionId, Facet, Illegal, Import, LifeChange, Net, Outcome,
    Path, Record, Role, RunChange, RunId, StepId, TokenId, any_of, evolve,
};

/// End of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FiringEnd {
    /// It has not ended by itself: the execution ended before.
    Open,
    Done,
    /// It failed and an arc handled that.
    Handled,
    Failed,
    Skipped,
}

#[derive(Debug, Clone)]
pub(crate) struct Firing {
    pub(crate) step: StepId,
    pub(crate) path: Path,
    pub(crate) role: Role,
    pub(crate) token: Option<TokenId>,
    /// Number among the firings of its step, from 1; an iteration has the number of its loop.
    pub(crate) number: u32,
    pub(crate) end: FiringEnd,
    /// True once a compensation hook has undone it.
    pub(crate) undone: bool,
    pub(crate) is_loop: bool,
    /// The child whose failure or cancellation ended the firing, and the record that started it.
    pub(crate) child: Option<(ExecutionId, usize)>,
}

/// Work of an ended execution.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Firings in the order in which they fired.
    pub(crate) firings: BTreeMap<RunId, Firing>,
    /// The newest firing at each place.
    pub(crate) places: BTreeMap<(StepId, Path), RunId>,
    /// Iterations that succeeded.
    pub(crate) succeeded: BTreeSet<(RunId, u32)>,
    /// The firing that emitted a token, and the position of the token among those it emitted; only in `each` nets.
    pub(crate) emitters: BTreeMap<TokenId, (RunId, u32)>,
    /// The tokens that waited at a join step, by the token that took their place.
    pub(crate) joined: BTreeMap<TokenId, Vec<TokenId>>,
    /// The firing of the token that took their place.
    fired_joins: BTreeMap<TokenId, RunId>,
    /// Number of the first record that counts after `Created`: a restart discards those before it.
    pub(crate) first: usize,
    pub(crate) generation: u32,
    numbers: BTreeMap<StepId, u32>,
}

/// Replaces the imports of a creation, which older releases stored, by records of the same meaning.
pub(crate) fn expand_imports(journal: &[Record]) -> Option<Vec<Record>> {
    let Event::Created(created) = &journal.first()?.event else { return None };
    if created.create.imports.is_empty() {
        return None;
    }
    let mut records = Vec::with_capacity(journal.len());
    for record in journal {
        let Event::Created(created) = &record.event else {
            records.push(record.clone());
            continue;
        };
        let mut create = created.create.clone();
        let imports = std::mem::take(&mut create.imports);
        let created = Created { net: created.net, create };
        records.push(Record { at: record.at, event: Event::Created(Box::new(created)) });
        for (import, run) in imports.into_iter().zip(RunId::first(1).0..) {
            records.extend(import_events(import, RunId(run)).map(|event| Record { at: record.at, event }));
        }
    }
    Some(records)
}

fn import_events(import: Import, run: RunId) -> impl Iterator<Item = Event> {
    let Import { step, output, emitted } = import;
    let path = Path::default();
    let fired = Event::Fired { run, step, path: path.clone(), token: None, role: Role::Routed, args: None };
    let done =
        Event::Done { run, fence: None, output, patch: Default::default(), times: None, metadata: None };
    let end = BranchEnd::GoesOn;
    let routed = emitted.map(|emitted| Event::Routed { run, step, path, emitted, end });
    [fired, done].into_iter().chain(routed)
}

impl Past {
    pub(crate) fn read(net: &Net, journal: &[Record]) -> Result<Past, Illegal> {
        let mut past = Past { generation: 1, ..Past::default() };
        for (record, number) in journal.iter().zip(0..) {
            past.observe(number, &record.event);
        }
        if net.policy().join == Join::Each {
            past.find_emitters(net, journal)?;
        }
        Ok(past)
    }

    /// Replays the journal to learn which firing emitted each token.
    fn find_emitters(&mut self, net: &Net, journal: &[Record]) -> Result<(), Illegal> {
        let mut state = Execution::default();
        for record in journal {
            let before = state.head.next_token;
            evolve(&mut state, net, record)?;
            if let Some((run, RunChange::Routed(..))) = record.event.run_change() {
                let tokens = (before.0..state.head.next_token.0).map(TokenId);
                self.emitters.extend(tokens.zip(0..).map(|(token, place)| (token, (run, place))));
            }
        }
        Ok(())
    }

    fn observe(&mut self, number: usize, event: &Event) {
        match event.facet() {
            Facet::Run(run, change) => self.observe_run(number, run, change),
            Facet::Life(LifeChange::Restarted(generation)) => {
                *self = Past { first: number, generation, ..Past::default() };
            }
            Facet::Life(LifeChange::Forked(fork)) => self.generation = fork.generation,
            Facet::Joined(_, tokens, token, _) => drop(self.joined.insert(token, tokens.to_vec())),
            Facet::Life(
                any_of![LifeChange: Created PauseChanged Released Patched OutcomeDecided Cleared StopAsked
                Ended],
            )
            | any_of![Facet: Discarded Internal] => {}
        }
    }

    fn observe_run(&mut self, number: usize, run: RunId, change: RunChange<'_>) {
        match change {
            RunChange::Fired { step, path, token, role, .. } => {
                self.add(run, step, path, role.clone(), token, FiringEnd::Open);
            }
            RunChange::Skipped(step, path, token, _) => {
                self.add(run, step, path, Role::Routed, Some(token), FiringEnd::Skipped);
            }
            RunChange::Done(_) => self.end(run, FiringEnd::Done),
            RunChange::Failed { handled: true, .. } => self.end(run, FiringEnd::Handled),
            RunChange::Failed { handled: false, .. } => self.end(run, FiringEnd::Failed),
            RunChange::ChildStarted { child, .. } => self.set_child(run, Some((child, number))),
            RunChange::Retried => self.set_child(run, None),
            RunChange::Returned(cursor) => {
                let status = serde_json::from_value(cursor["child"]["status"].clone());
                if matches!(status, Ok(Outcome::Completed | Outcome::Partial)) {
                    self.set_child(run, None);
                }
            }
            RunChange::LoopStarted(_) => {
                if let Some(firing) = self.firings.get_mut(&run) {
                    firing.is_loop = true;
                }
            }
            RunChange::IterationEnded { index, failed: false, .. } => {
                self.succeeded.insert((run, index));
            }
            any_of![RunChange: IterationEnded Delayed Offered AwaitingManual Lost Dropped Routed AgentDecided
                Internal] => {}
        }
    }

    fn add(
        &mut self,
        run: RunId,
        step: StepId,
        path: &Path,
        role: Role,
        token: Option<TokenId>,
        end: FiringEnd,
    ) {
        let number = match &role {
            Role::Iteration { of, .. } => self.firings.get(of).map_or(1, |firing| firing.number),
            Role::Routed | Role::Final | Role::Tool { .. } => {
                let number = self.numbers.entry(step).or_default();
                *number += 1;
                *number
            }
            Role::Hook { .. } => 0,
        };
        if !matches!(role, Role::Iteration { .. } | Role::Hook { .. }) {
            self.places.insert((step, path.clone()), run);
        }
        if let Some(token) = token.filter(|token| self.joined.contains_key(token)) {
            self.fired_joins.insert(token, run);
        }
        let (path, undone, is_loop, child) = (path.clone(), false, false, None);
        self.firings.insert(run, Firing { step, path, role, token, number, end, undone, is_loop, child });
    }

    fn end(&mut self, run: RunId, end: FiringEnd) {
        let Some(firing) = self.firings.get_mut(&run) else { return };
        firing.end = end;
        if let (Role::Hook { of }, FiringEnd::Done) = (&firing.role, end) {
            let of = *of;
            self.firings.entry(of).and_modify(|firing| firing.undone = true);
        }
    }

    fn set_child(&mut self, run: RunId, child: Option<(ExecutionId, usize)>) {
        if let Some(firing) = self.firings.get_mut(&run) {
            firing.child = child;
        }
    }

    pub(crate) fn at(&self, step: StepId, path: &Path) -> Option<RunId> {
        self.places.get(&(step, path.clone())).copied()
    }

    /// Returns the firing that took the place of a join.
    pub(crate) fn fired_by(&self, joined: TokenId) -> Option<RunId> {
        self.fired_joins.get(&joined).copied()
    }

    /// Returns the firings whose tokens fired a firing of an `each` net: several at a join step, none at the entry.
    pub(crate) fn origins<'f>(&'f self, firing: &'f Firing) -> impl Iterator<Item = RunId> + 'f {
        let tokens = firing.token.iter().flat_map(|token| match self.joined.get(token) {
            Some(joined) => joined.as_slice(),
            None => std::slice::from_ref(token),
        });
        tokens.filter_map(|token| self.emitters.get(token)).map(|(run, _)| *run)
    }

    /// Returns the loop around a firing and the iteration of it that the firing belongs to.
    pub(crate) fn iteration_of(&self, net: &Net, firing: &Firing) -> Option<(RunId, u32)> {
        if let Role::Iteration { of, index } = firing.role {
            return Some((of, index));
        }
        let region = net.step(firing.step).region?;
        Some((self.at(region, &firing.path.parent())?, firing.path.index()?))
    }
}
