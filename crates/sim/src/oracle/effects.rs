//! Effects of the engine: every dispatch and every opening must be due.

use super::Checked;
use super::net::Begin;
use super::run::{Kind, Run, RunId, State};
use super::world::{Phase, World};
use crate::scenario::Work;
use crate::seen::{Firing, Of, Waits, What};

/// Fields that a dispatch and an opening have in common.
struct Seen<'a> {
    firing: Firing,
    step: usize,
    path: &'a [u32],
    of: Of,
    arg: Option<i64>,
    /// `None`: a worker may have it.
    waits: Option<Waits>,
}

impl World {
    pub(super) fn begins(&mut self, what: &What) -> Checked {
        match what {
            What::Dispatched { firing, step, path, of, attempt, fence, arg } => {
                let seen = Seen { firing: *firing, step: *step, path, of: *of, arg: *arg, waits: None };
                self.dispatched(&seen, *attempt, *fence)
            }
            What::Opened { firing, step, path, of, what, arg } => {
                let seen =
                    Seen { firing: *firing, step: *step, path, of: *of, arg: *arg, waits: Some(*what) };
                self.opened(&seen, *what)
            }
            _ => Ok(()),
        }
    }

    fn dispatched(&mut self, seen: &Seen<'_>, attempt: u32, fence: u64) -> Checked {
        if fence <= self.fence_max {
            return self.broken("fence", format!("fence {fence} after {}", self.fence_max));
        }
        self.fence_max = fence;
        let id = self.due_now(seen)?;
        if self.runs[id].attempt != attempt {
            let described = self.runs[id].describe();
            return self.broken("attempt", format!("attempt {attempt} is dispatched of {described}"));
        }
        self.take_slot(id)?;
        self.runs[id].state = State::Offered { fence };
        Ok(())
    }

    fn opened(&mut self, seen: &Seen<'_>, waits: Waits) -> Checked {
        if let Some(at) = self.passing(seen) {
            self.input.passing.remove(at);
            self.used.insert(seen.firing);
            return Ok(());
        }
        let id = self.due_now(seen)?;
        let step = self.net.step(self.runs[id].step).clone();
        let in_ms = |ms: u64| self.now + ms.cast_signed();
        let confirms = self.runs[id].state == State::Confirm;
        let state = match (waits, step.work, step.manual) {
            (Waits::Person, Work::Approval(person), _) if !confirms => {
                State::Person { due: person.deadline_ms.map(in_ms) }
            }
            (Waits::Person, _, manual) => {
                State::Person { due: manual.and_then(|person| person.deadline_ms).map(in_ms) }
            }
            (Waits::Route, _, _) => State::Route { due: in_ms(step.route_ms.unwrap_or(0)) },
            (Waits::Delay, Work::Delay { ms }, _) => State::Delay { due: in_ms(ms) },
            (Waits::Child | Waits::Delay, _, _) => State::Child { due: step.timeout_ms.map(in_ms) },
        };
        if waits == Waits::Child {
            self.take_slot(id)?;
            self.ordered_to_cancel(seen.firing);
        }
        self.runs[id].state = state;
        Ok(())
    }

    /// A child that was started just before the outcome was decided is ordered to cancel with the others.
    fn ordered_to_cancel(&mut self, firing: Firing) {
        if self.phase == Phase::Draining {
            self.input.stops_owed.insert(firing);
        }
    }

    fn passing(&self, seen: &Seen<'_>) -> Option<usize> {
        let same = |&id: &RunId| fits(&self.runs[id], seen) && waits_of(self.begin(id)) == Some(seen.waits);
        self.input.passing.iter().position(same)
    }

    fn take_slot(&mut self, id: RunId) -> Checked {
        if !self.slot_is_free() {
            let most = self.net.scenario.max_parallel;
            return self
                .broken("cap", format!("beyond {most:?} in flight begins {}", self.runs[id].describe()));
        }
        if !self.runs[id].again {
            self.input.began.push(id);
        }
        self.runs[id].again = false;
        Ok(())
    }

    /// The step-run this is the beginning of; it has its firing number from now on.
    fn due_now(&mut self, seen: &Seen<'_>) -> Checked<RunId> {
        if self.phase == Phase::Over {
            return self
                .broken("terminal", format!("firing {} of step {} after the end", seen.firing, seen.step));
        }
        let Some(id) = self.candidate(seen) else { return self.not_due(seen) };
        let confirms = self.runs[id].state == State::Confirm;
        if self.held && !confirms {
            return self.broken("hold", format!("begins during a hold: {}", self.runs[id].describe()));
        }
        if self.runs[id].firing.is_none() {
            self.number(id, seen.firing)?;
        }
        if let (Kind::Hook { undoes }, Of::Hook { of }) = (self.runs[id].of, seen.of) {
            self.undoes(undoes, of)?;
        }
        self.runs[id].began = true;
        Ok(id)
    }

    fn candidate(&self, seen: &Seen<'_>) -> Option<RunId> {
        let fits = |&id: &RunId| {
            let run = &self.runs[id];
            let waits = match run.state {
                State::Ready => waits_of(self.begin(id)),
                State::Confirm => Some(Some(Waits::Person)),
                _ => None,
            };
            waits == Some(seen.waits)
                && fits(run, seen)
                && run.firing.is_none_or(|firing| firing == seen.firing)
                && (run.firing.is_some() || !self.used.contains(&seen.firing))
        };
        let all: Vec<RunId> = (0..self.runs.len()).filter(fits).collect();
        let known = all.iter().find(|&&id| self.runs[id].firing.is_some());
        let above = all.iter().find(|&&id| self.runs[id].above < seen.firing);
        known.or(above).or(all.first()).copied()
    }

    fn number(&mut self, id: RunId, firing: Firing) -> Checked {
        let above = self.runs[id].above;
        if firing <= above {
            return self
                .broken("firing", format!("{firing} is not above {above} for {}", self.runs[id].describe()));
        }
        self.runs[id].firing = Some(firing);
        self.used.insert(firing);
        self.firing_max = self.firing_max.max(firing);
        Ok(())
    }

    /// The number of a step-run that ran inside the engine is seen here for the first time.
    fn undoes(&mut self, undone: RunId, of: Firing) -> Checked {
        match self.runs[undone].firing {
            Some(firing) if firing == of => Ok(()),
            None if !self.used.contains(&of) => {
                self.used.insert(of);
                self.runs[undone].firing = Some(of);
                Ok(())
            }
            Some(_) | None => {
                self.broken("hook", format!("undoes {of}, due is {}", self.runs[undone].describe()))
            }
        }
    }

    /// Reports an effect that is not due, with the most specific reason.
    fn not_due(&self, seen: &Seen<'_>) -> Checked<RunId> {
        let what = format!("firing {} of step {} path {:?}", seen.firing, seen.step, seen.path);
        if let Some(run) = self.runs.iter().find(|run| run.firing == Some(seen.firing)) {
            let rule = match (&run.state, run.step == seen.step && run.path == seen.path) {
                (_, false) => "firing",
                (State::Backoff { .. }, true) => "retry",
                (State::Offered { .. } | State::Ended(_), true) => "dispatch",
                (_, true) => "dispatch",
            };
            return self.broken(rule, format!("{what} is not due: {}", run.describe()));
        }
        if self.used.contains(&seen.firing) {
            return self.broken("firing", format!("{what}: the number was used before"));
        }
        let rule = match seen.of {
            Of::Hook { .. } => "hook",
            Of::Final => "final",
            Of::Iteration => "loop",
            Of::Tool => "agent",
            Of::Step => self.why_not(seen),
        };
        self.broken(rule, format!("{what} is not due"))
    }

    fn why_not(&self, seen: &Seen<'_>) -> &'static str {
        let here = |run: &&Run| run.step == seen.step && run.path == seen.path && run.of == Kind::Step;
        let mut lives = self.runs.iter().filter(here).filter(|run| run.lives() && run.firing.is_none());
        match (lives.next().map(|run| (&run.state, run.arg == seen.arg)), self.decided()) {
            (Some((State::Gate { .. }, _)), _) => "gate",
            (Some((State::Ready, false)), _) => "args",
            (Some(_), _) => "dispatch",
            (None, true) => "drain",
            (None, false) => "routing",
        }
    }

    pub(super) fn stop_asked(&mut self, firings: &[Firing]) -> Checked {
        for &firing in firings {
            let asked = self.input.stops_owed.contains(&firing) || self.input.stops_allowed.contains(&firing);
            if !asked {
                return self.broken("stop", format!("{firing} is asked to stop without a cause"));
            }
            self.input.stops_seen.insert(firing);
            self.stopped.insert(firing);
        }
        Ok(())
    }
}

fn fits(run: &Run, seen: &Seen<'_>) -> bool {
    // The documents do not define the arguments of a hook.
    let hook = matches!(run.of, Kind::Hook { .. });
    run.step == seen.step && run.path == seen.path && run.is(seen.of) && (hook || run.arg == seen.arg)
}

/// Returns how the beginning is observed: by a worker (`Some(None)`), as a wait of some kind, or not at all.
fn waits_of(begin: Begin) -> Option<Option<Waits>> {
    match begin {
        Begin::Task => Some(None),
        Begin::Child => Some(Some(Waits::Child)),
        Begin::Person => Some(Some(Waits::Person)),
        Begin::Delay => Some(Some(Waits::Delay)),
        Begin::Route => Some(Some(Waits::Route)),
        Begin::Noop | Begin::Loop => None,
    }
}
