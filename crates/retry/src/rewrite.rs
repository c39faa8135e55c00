//! The journal of an ended execution without what a retry runs again, in terms of the net of the retry.

use crate::judge::{Judge, Verdict};
use crate::past::FiringEnd;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::net::Join;
use windlass_kernel::{
    AgentDecision, Args, BranchEnd, Created, Event, Execution, Illegal, Record, Role, RunId, StartWhen,
    StepId, TokenId, any_of, evolve,
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
        let is_created = matches!(record.event, Event::Created(_));
        if number < self.judge.past.first && !is_created {
            return Ok(());
        }
        let Some(event) = self.translate(&record.event, number) else { return Ok(()) };
        let taken = &record.event;
        let before = self.rewritten.state.head.next_token;
        let record = Record { at: record.at, event };
        evolve(&mut self.rewritten.state, self.judge.new, &record)?;
        if let Event::Routed { run, .. } = &record.event {
            let after = self.rewritten.state.head.next_token;
            let numbered = (before.0..after.0).map(TokenId).zip(0..);
            self.tokens.extend(numbered.map(|(token, place)| ((*run, place), token)));
            self.routed.insert(*run);
        }
        if let (Event::Joined { token: old, .. }, Event::Joined { token: new, .. }) = (taken, &record.event) {
            self.joined.insert(*old, *new);
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
                _ => {}
            }
        }
        self.rewritten
    }

    /// Returns the event as the new execution has it, or `None` if it does not take the event over.
    fn translate(&self, event: &Event, number: usize) -> Option<Event> {
        match event {
            Event::Created(created) => Some(Event::Created(Box::new(self.translate_creation(created)))),
            Event::Patched { .. } | Event::Forked(_) => Some(event.clone()),
            Event::Discarded { token } => {
                let token = self.new_token(*token)?;
                // At a step that joins now, the token waits for others.
                self.rewritten.state.arrived.contains(&token).then_some(Event::Discarded { token })
            }
            Event::Joined { step, tokens, token, args } => self.translate_join(*step, tokens, *token, args),
            any_of![Event: Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
                Compensating Finalizing Ended Restarted Continued Denied Admitted NotCompensated] => None,
            any_of![Event: Fired Skipped Waiting Woken Delayed Offered Lost RetryScheduled Yielded AwaitingManual
                CompletedManually Done Failed Dropped Routed LoopStarted IterationStarted IterationEnded
                ChildStarted ChildPaused Returned AgentDecided] => {
                let taken = match self.judge.verdict(event.run()?) {
                    Verdict::Kept => true,
                    Verdict::Resumed => is_progress(event),
                    Verdict::Continued(_, start) => number <= start,
                    Verdict::Again(_) | Verdict::Dropped => false,
                };
                if taken { self.translate_taken(event) } else { None }
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
    fn translate_taken(&self, event: &Event) -> Option<Event> {
        let mut event = event.clone();
        match &mut event {
            Event::Fired { step, token, .. } => {
                *step = self.new_step(*step)?;
                *token = token.and_then(|token| self.new_token(token));
            }
            Event::Skipped { step, token, .. } => {
                *step = self.new_step(*step)?;
                if self.judge.new.policy().join == Join::Each {
                    *token = self.new_token(*token)?;
                }
            }
            Event::Routed { step, end, .. } => {
                if *end == BranchEnd::DeadEnd || self.judge.routes_differently(*step) {
                    return None;
                }
                *step = self.new_step(*step)?;
            }
            Event::Offered { reads, .. } => {
                *reads = reads.iter().filter_map(|(step, run)| Some((self.new_step(*step)?, *run))).collect();
            }
            Event::AgentDecided {
                decision: AgentDecision::Execute { step, .. } | AgentDecision::Skip { step, .. },
                ..
            } => *step = self.new_step(*step)?,
            any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
                Compensating Finalizing Ended Restarted Continued Denied Admitted Discarded Joined Waiting Woken
                Delayed Lost RetryScheduled Yielded AwaitingManual CompletedManually Done Failed Dropped LoopStarted
                IterationStarted IterationEnded Patched ChildStarted ChildPaused Returned NotCompensated AgentDecided
                Forked] => {}
        }
        Some(event)
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

/// Returns whether an event of a loop that failed or was stopped is part of the loop that continues.
fn is_progress(event: &Event) -> bool {
    match event {
        Event::IterationEnded { failed, .. } => !failed,
        any_of![Event: Fired Waiting Woken LoopStarted IterationStarted] => true,
        any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
            Compensating Finalizing Ended Restarted Continued Denied Admitted Discarded Joined Skipped Delayed Offered
            Lost RetryScheduled Yielded AwaitingManual CompletedManually Done Failed Dropped Routed Patched
            ChildStarted ChildPaused Returned NotCompensated AgentDecided Forked] => false,
    }
}
