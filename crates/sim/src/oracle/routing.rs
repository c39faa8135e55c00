//! Consequences of the end of a step-run for the others: tokens, joins, gates, conditions.

use super::arcs::{Sight, Token, after_done, after_failure, handles, handles_failure, matching, truth};
use super::run::{End, Kind, Run, RunId, State};
use super::world::{Cause, Outcome, World};
use crate::scenario::{Dialect, Failure, When};
use std::collections::BTreeMap;

/// Tokens that wait for the rest of their join.
pub(super) type Joins = BTreeMap<(usize, Vec<u32>), Vec<Token>>;

impl World {
    /// A step-run ended for good.
    pub(super) fn finish(&mut self, id: RunId, end: End) {
        self.leave_gate(id);
        if self.drains(id) {
            self.runs[id].state = State::Ended(end);
            return;
        }
        match self.runs[id].of {
            Kind::Step => self.leave(id, end),
            Kind::Iteration { of } => {
                self.runs[id].state = State::Ended(end);
                self.lap_ended(of, end == End::Failed);
            }
            Kind::Final => {
                self.runs[id].state = State::Ended(end);
                self.final_ended(end);
            }
            Kind::Hook { .. } => self.runs[id].state = State::Ended(end),
            Kind::Tool { .. } => {
                self.runs[id].state = State::Ended(end);
                self.well |= matches!(end, End::Done(_));
            }
        }
    }

    fn leave(&mut self, id: RunId, end: End) {
        let (step, path) = (self.runs[id].step, self.runs[id].path.clone());
        let end = if self.readable(id, end) { end } else { End::Failed };
        let at_gate = matches!(self.runs[id].state, State::Gate { .. });
        self.runs[id].state = State::Ended(end);
        if let End::Done(_) = end {
            self.completed.push(id);
        }
        match self.net.is_playbook() {
            true => self.leave_playbook(id, end, at_gate),
            false => self.leave_join(id, end),
        }
        self.settle_in_body(step, &path, end == End::Failed && !handles_failure(self.net.step(step)));
    }

    /// Guards that cannot be evaluated turn a good end into a failure.
    fn readable(&self, id: RunId, end: End) -> bool {
        let step = self.net.step(self.runs[id].step);
        match (end, self.net.is_playbook()) {
            (End::Done(_), true) => matching(step, self.sight(id, end), false).is_ok(),
            (End::Done(_), false) => after_done(step, self.sight(id, end)).is_ok(),
            (End::Failed | End::Skipped | End::Gone, _) => true,
        }
    }

    fn sight(&self, id: RunId, end: End) -> Sight<'_> {
        Sight { event: Some(end), flags: &self.flags, arg: self.runs[id].arg }
    }

    fn leave_playbook(&mut self, id: RunId, end: End, at_gate: bool) {
        let step = self.net.step(self.runs[id].step);
        let refused = end == End::Failed && (at_gate || self.net.asks_people(self.runs[id].step));
        let matched = match end {
            End::Skipped | End::Gone => Ok(Vec::new()),
            End::Done(_) | End::Failed => matching(step, self.sight(id, end), refused),
        };
        let handled = |arcs: &Vec<usize>| arcs.iter().any(|&arc| handles(step.arcs[arc].when));
        let strict = self.net.scenario.no_next_is_error && !step.arcs.is_empty();
        match (end, &matched) {
            (End::Done(_), Ok(arcs)) if arcs.is_empty() && strict => self.unhandled(id),
            (End::Done(_) | End::Skipped, Ok(arcs)) if arcs.is_empty() => self.well = true,
            (End::Failed, Ok(arcs)) if handled(arcs) => {}
            (End::Failed, _) => self.unhandled(id),
            (End::Done(_) | End::Skipped | End::Gone, _) => {}
        }
        for arc in matched.unwrap_or_default() {
            if !self.decided() {
                let from = self.runs[id].step;
                let arc = &self.net.step(from).arcs[arc];
                let (to, args) = (arc.to, arc.args);
                match self.net.step(to).join {
                    true => self.gathered.entry(to).or_default().push((from, args)),
                    false => self.fire(to, Vec::new(), args),
                }
            }
        }
    }

    fn leave_join(&mut self, id: RunId, end: End) {
        let step = self.net.step(self.runs[id].step);
        self.well |= matches!(end, End::Done(_)) && !step.trigger;
        let tokens = match end {
            End::Done(_) => after_done(step, self.sight(id, end)).unwrap_or_default(),
            End::Failed => {
                let refused = self.net.asks_people(self.runs[id].step);
                after_failure(step, self.net.scenario.failure, refused)
            }
            End::Skipped | End::Gone => vec![Token::Dead; step.arcs.len()],
        };
        if end == End::Failed && !handles_failure(step) {
            self.unhandled(id);
        }
        let (step, path) = (self.runs[id].step, self.runs[id].path.clone());
        self.emit(step, &path, &tokens);
    }

    fn emit(&mut self, step: usize, path: &[u32], tokens: &[Token]) {
        for (arc, &token) in tokens.iter().enumerate() {
            if !self.decided() {
                self.arrive(self.net.step(step).arcs[arc].to, path, token);
            }
        }
    }

    pub(super) fn arrive(&mut self, step: usize, path: &[u32], token: Token) {
        let key = (step, path.to_vec());
        let standing = self.joins.entry(key.clone()).or_default();
        standing.push(token);
        if standing.len() == self.net.incoming[step] {
            let tokens = self.joins.remove(&key).unwrap_or_default();
            self.resolve(step, path, &tokens);
        }
    }

    fn resolve(&mut self, step: usize, path: &[u32], tokens: &[Token]) {
        let poisoned = tokens.contains(&Token::Poisoned);
        let live = tokens.iter().filter(|token| matches!(token, Token::Live(_))).count();
        let fires = match self.net.scenario.dialect {
            Dialect::Workflow => live > 0,
            Dialect::Plan | Dialect::Actions | Dialect::Playbook => live == tokens.len(),
        };
        match (poisoned, fires) {
            (true, _) => self.pass_over(step, path, Token::Poisoned),
            (false, false) => self.pass_over(step, path, Token::Dead),
            (false, true) => {
                let arg = self.joined_arg(tokens);
                self.fire(step, path.to_vec(), arg);
            }
        }
    }

    /// Picks an argument for a join; the documents do not define which of several bound arguments it passes on.
    fn joined_arg(&mut self, tokens: &[Token]) -> Option<i64> {
        let mut args: Vec<i64> = tokens
            .iter()
            .filter_map(|token| match token {
                Token::Live(arg) => *arg,
                Token::Dead | Token::Poisoned => None,
            })
            .collect();
        args.sort_unstable();
        args.dedup();
        match args.len() {
            0 => None,
            1 => Some(args[0]),
            among => Some(args[usize::from(self.choose(among.min(usize::from(u8::MAX)) as u8))]),
        }
    }

    /// A step that control does not reach.
    fn pass_over(&mut self, step: usize, path: &[u32], token: Token) {
        let tokens = vec![token; self.net.step(step).arcs.len()];
        self.emit(step, path, &tokens);
        self.settle_in_body(step, path, false);
    }

    /// A failure that no arc handles. In the body of a loop it is the iteration's, and an error handle of a loop around
    /// it takes it. Without one, whether fail-fast waits for the loop's end is not written.
    fn unhandled(&mut self, id: RunId) {
        let fail_fast = self.net.scenario.failure == Failure::FailFast;
        let region = self.net.step(self.runs[id].step).region;
        let around = std::iter::successors(region, |&outer| self.net.step(outer).region);
        let loops: Vec<usize> = around.collect();
        if !loops.is_empty() {
            let taken = loops.iter().any(|&outer| handles_failure(self.net.step(outer)));
            if taken || !(fail_fast && self.either()) {
                return;
            }
        }
        self.failures += 1;
        if fail_fast {
            self.decide(Outcome::Failed, Cause::Failure);
        }
    }

    /// Returns whether a live token waits at the step.
    pub(super) fn fire(&mut self, step: usize, path: Vec<u32>, arg: Option<i64>) {
        let gate = self.net.step(step).gate.filter(|gate| !self.flags.contains(&gate.flag));
        let mut run = Run::new(step, path, Kind::Step, arg, self.firing_max);
        run.fresh = self.input.instant;
        match gate {
            Some(gate) if gate.discard => self.discard(&run),
            Some(gate) => {
                run.state = State::Gate { due: gate.deadline_ms.map(|ms| self.now + ms.cast_signed()) };
                self.runs.push(run);
            }
            None => {
                self.runs.push(run);
                self.admit(self.runs.len() - 1);
            }
        }
    }

    /// Whether the branch of a discarded token ended well is not written.
    fn discard(&mut self, run: &Run) {
        match self.net.is_playbook() {
            true => self.well = self.well || (self.net.scenario.partial && self.either()),
            false => self.pass_over(run.step, &run.path, Token::Dead),
        }
    }

    pub(super) fn set_flag(&mut self, flag: usize, value: bool) {
        if !value {
            self.flags.remove(&flag);
            return;
        }
        self.flags.insert(flag);
        for id in 0..self.runs.len() {
            let run = &self.runs[id];
            let opens = self.net.step(run.step).gate.is_some_and(|gate| gate.flag == flag);
            if opens && matches!(run.state, State::Gate { .. }) {
                self.leave_gate(id);
                self.runs[id].fresh |= self.input.instant;
                self.admit(id);
            }
        }
    }

    fn leave_gate(&mut self, id: RunId) {
        if let State::Gate { due: Some(due) } = self.runs[id].state {
            self.gone_gates.push((self.runs[id].step, due));
        }
    }

    /// The token is admitted; a condition is asked right then.
    fn admit(&mut self, id: RunId) {
        self.runs[id].state = State::Ready;
        if self.net.step(self.runs[id].step).condition.is_some() {
            self.ask_condition(id);
        }
    }

    fn ask_condition(&mut self, id: RunId) {
        let run = &self.runs[id];
        let condition = self.net.step(run.step).condition.unwrap_or(When::Always);
        let sight = Sight { event: None, flags: &self.flags, arg: run.arg };
        match truth(condition, sight) {
            Ok(true) => self.runs[id].state = State::Ready,
            Ok(false) => self.finish(id, End::Skipped),
            Err(_) => self.finish(id, End::Failed),
        }
    }

    /// A slot is left for it after those that go first.
    pub(super) fn room_for(&self, id: RunId) -> bool {
        let key = |id: RunId| (self.order(id), id);
        let first = (0..self.runs.len()).filter(|&other| {
            other != id && self.is_ready(other) && self.wants_slot(other) && key(other) < key(id)
        });
        let taken = self.slots_taken() + first.count();
        self.net.scenario.max_parallel.is_none_or(|most| taken < most as usize)
    }
}
