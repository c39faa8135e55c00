//! The journal of an ended execution without what a retry runs again, in terms of the net of the retry.

use crate::judge::{Judge, Verdict};
use crate::past::FiringEnd;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::Join;
use windlass_kernel::{
    AgentDecision, Args, BranchEnd, Created, Event, Execution, Facet, Illegal, LifeChange, Record, Role,
    RunChange, RunId, StartWhen, StepId, TokenId, any_of, evolve,
};

/// Records that a retry takes over, and the state after them.
pub(crate) struct Rewritten {
    pub(crate) records: Vec<Record>,
    pub(crate) state: Execution<'static>,
    /// Completed firings whose tokens are not in the records; they are routed again.
    pub(crate) unrouted: Vec<RunId>,
    /// Succeeded iterations whose loop has not counted them.
    pub(crate) unended: Vec<(RunId, u32)>,
}

pub(crate) fn rewrite(judge: &Judge<'_>, journal: &[Record]) -> Result<Rewritten, Illegal> {
    let mut rewriter = Rewriter {
        judge,
        tokens: BTreeMap::new(),
        joined: BTreeMap::new(),
        routed: BTreeSet::new(),
        rewritten: Rewritten {
            records: Vec::new(),
            state: Execution::default(),
            unrouted: Vec::new(),
            unended: Vec::new(),
        },
    };
    for (record, number) in journal.iter().zip(0..) {
        rewriter.take(record, number)?;
    }
    Ok(rewriter.finish())
}

struct Rewriter<'j, 'p> {
    judge: &'j Judge<'p>,
    /// New numbers of tokens in `each` nets, by their emitter and position.
    tokens: BTreeMap<(RunId, u32), TokenId>,
    /// New numbers of the tokens of join steps.
    joined: BTreeMap<TokenId, TokenId>,
    routed: BTreeSet<RunId>,
    rewritten: Rewritten,
}

impl Rewriter<'_, '_> {
    fn take(&mut self, record: &Record, number: usize) -> Result<(), Illegal> {
        let taken = record.event.facet();
        let is_created = matches!(taken, Facet::Life(LifeChange::Created(_)));
        if number < self.judge.past.first && !is_created {
            return Ok(());
        }
        let Some(event) = self.translate(&record.event, number) else { return Ok(()) };
        let before = self.rewritten.state.head.next_token;
        let record = Record { at: record.at, event };
        evolve(&mut self.rewritten.state, self.judge.new, &record)?;
        if let Facet::Run(run, RunChange::Routed(..)) = taken {
            let after = self.rewritten.state.head.next_token;
            let numbered = (before.0..after.0).map(TokenId).zip(0..);
            self.tokens.extend(numbered.map(|(token, place)| ((run, place), token)));
            self.routed.insert(run);
        }
        if let Facet::Joined(_, _, old, _) = taken {
            self.joined.insert(old, before);
        }
        self.rewritten.records.push(record);
        Ok(())
    }

    fn finish(mut self) -> Rewritten {
        for (run, firing) in &self.judge.past.firings {
            let done = self.judge.verdict(*run) == Verdict::Kept && firing.end == FiringEnd::Done;
            match firing.role {
                Role::Routed if done && !self.routed.contains(run) && !self.judge.is_closed(firing) => {
                    self.rewritten.unrouted.push(*run);
                }
                Role::Iteration { of, index }
                    if done && !self.judge.past.succeeded.contains(&(of, index)) =>
                {
                    self.rewritten.unended.push((of, index));
                }
                any_of![Role: Routed Iteration Final Hook Tool] => {}
            }
        }
        self.rewritten
    }

    /// Returns the event as the new execution has it, or `None` if it does not take the event over.
    fn translate(&self, event: &Event, number: usize) -> Option<Event> {
        match event.facet() {
            Facet::Life(LifeChange::Created(created)) => {
                Some(Event::Created(Box::new(self.translate_creation(created))))
            }
            Facet::Life(any_of![LifeChange: Patched Forked]) => Some(event.clone()),
            Facet::Discarded(token) => {
                let token = self.new_token(token)?;
                // At a step that joins now, the token waits for others.
                self.rewritten.state.arrived.contains(&token).then_some(Event::Discarded { token })
            }
            Facet::Joined(step, tokens, token, args) => self.translate_join(step, tokens, token, args),
            Facet::Life(
                any_of![LifeChange: PauseChanged Released OutcomeDecided Cleared StopAsked Ended Restarted],
            )
            | Facet::Internal => None,
            Facet::Run(run, change) => {
                let taken = match self.judge.verdict(run) {
                    Verdict::Kept => true,
                    Verdict::Resumed => is_progress(change),
                    Verdict::Continued(_, start) => number <= start,
                    Verdict::Again(_) | Verdict::Dropped => false,
                };
                if taken { self.translate_taken(event, run, change) } else { None }
            }
        }
    }

    /// Takes a join over together with the firing that followed it; otherwise the tokens wait again.
    fn translate_join(&self, step: StepId, tokens: &[TokenId], token: TokenId, args: &Args) -> Option<Event> {
        let fired = self.judge.past.fired_by(token)?;
        let is_taken =
            matches!(self.judge.verdict(fired), Verdict::Kept | Verdict::Resumed | Verdict::Continued(..));
        let tokens = tokens.iter().map(|token| self.new_token(*token)).collect::<Option<Vec<_>>>()?;
        let (step, token) = (self.new_step(step)?, self.rewritten.state.head.next_token);
        is_taken.then(|| Event::Joined { step, tokens, token, args: args.clone() })
    }

    fn translate_creation(&self, created: &Created) -> Created {
        let mut create = created.create.clone();
        create.start = StartWhen::Now;
        if create.timeout_ms == self.judge.old.policy().timeout_ms {
            create.timeout_ms = self.judge.new.policy().timeout_ms;
        }
        Created { net: self.judge.new.digest(), create }
    }

    /// Replaces numbers of steps and tokens, which differ between the executions.
    fn translate_taken(&self, event: &Event, run: RunId, change: RunChange<'_>) -> Option<Event> {
        Some(match change {
            RunChange::Fired { step, path, token, role, args } => Event::Fired {
                run,
                step: self.new_step(step)?,
                path: path.clone(),
                token: token.and_then(|token| self.new_token(token)),
                role: role.clone(),
                args: args.clone(),
            },
            RunChange::Skipped(step, path, token, reason) => {
                let each = self.judge.new.policy().join == Join::Each;
                let token = if each { self.new_token(token)? } else { token };
                Event::Skipped { run, token, step: self.new_step(step)?, path: path.clone(), reason }
            }
            RunChange::Routed(_, _, _, BranchEnd::DeadEnd) => return None,
            RunChange::Routed(step, ..) if self.judge.routes_differently(step) => return None,
            RunChange::Routed(step, path, emitted, end) => {
                let (path, emitted) = (path.clone(), emitted.to_vec());
                Event::Routed { run, step: self.new_step(step)?, path, emitted, end }
            }
            RunChange::Offered(fence, attempt, reads) => {
                let reads = reads.iter().filter_map(|(step, run)| Some((self.new_step(*step)?, *run)));
                Event::Offered { run, fence, attempt, reads: reads.collect() }
            }
            RunChange::AgentDecided(call, decision) => {
                let mut decision = decision.clone();
                match &mut decision {
                    AgentDecision::Execute { step, .. } | AgentDecision::Skip { step, .. } => {
                        *step = self.new_step(*step)?;
                    }
                    AgentDecision::Pause { .. } | AgentDecision::Fail { .. } => {}
                }
                Event::AgentDecided { run, call: call.to_owned(), decision }
            }
            any_of![RunChange: LoopStarted IterationEnded Delayed AwaitingManual ChildStarted Returned Lost Retried Done
                Failed Dropped Internal] => event.clone(),
        })
    }

    fn new_step(&self, step: StepId) -> Option<StepId> {
        self.judge.steps[step.index()]
    }

    /// Returns the new number of a token; in nets with joins tokens are taken by step.
    fn new_token(&self, token: TokenId) -> Option<TokenId> {
        let emitted = || self.tokens.get(self.judge.past.emitters.get(&token)?);
        self.joined.get(&token).or_else(emitted).copied()
    }
}

/// Returns whether a change of a loop that failed or was stopped is part of the loop that continues. Internal changes are
/// its wait for a route and the beginnings of iterations.
fn is_progress(change: RunChange<'_>) -> bool {
    match change {
        RunChange::IterationEnded { failed, .. } => !failed,
        any_of![RunChange: Fired LoopStarted Internal] => true,
        any_of![RunChange: Skipped Delayed Offered AwaitingManual ChildStarted Returned Lost Retried Done Failed Dropped
            Routed AgentDecided] => false,
    }
}
