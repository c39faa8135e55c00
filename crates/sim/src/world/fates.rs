//! Consequences of dispatched work, planned when the dispatch is seen.

use super::World;
use super::happen::Happening;
use crate::generate::FLAGS;
use crate::scenario::{Dialect, Work};
use crate::seen::{Class, Firing, Reply, Status, Verdict, Waits, What, Wish};

/// Time for which a lease outlives its worker.
const LEASE_MS: u64 = 3_000;

impl World {
    pub(super) fn plan_for(&mut self, what: &What) {
        match what {
            What::Dispatched { firing, step, fence, .. } => self.plan_worker(*firing, *step, *fence),
            What::Opened { firing, step, what, .. } => self.plan_wait(*firing, *step, *what),
            What::StopAsked { firings } => {
                for firing in firings {
                    self.plan_stop(*firing);
                }
            }
            _ => {}
        }
    }

    pub(super) fn plan_status(&mut self, status: Status) {
        match status {
            Status::Queued => self.plan_in(50, Happening::Assign),
            Status::Starting => {
                if self.scenario.dialect == Dialect::Plan && self.rng.percent(self.trouble / 5) {
                    let generation = self.state.head.generation;
                    self.plan_in(LEASE_MS, Happening::WorkerDies { generation });
                } else {
                    self.plan_in(50, Happening::Begin);
                }
            }
            Status::Finalizing if self.scenario.uploads => {
                if self.rng.percent(self.trouble / 5) {
                    let generation = self.state.head.generation;
                    self.plan_in(LEASE_MS, Happening::WorkerDies { generation });
                } else {
                    let failed = self.rng.percent(self.trouble / 2);
                    self.plan_in(2_000, Happening::Uploads { failed });
                }
            }
            _ => {}
        }
    }

    fn plan_in(&mut self, within_ms: u64, happening: Happening) {
        let at = self.now + self.rng.between(0, within_ms) as i64;
        self.agenda.plan(at, happening);
    }

    fn plan_worker(&mut self, firing: Firing, step: usize, fence: u64) {
        if self.scenario.steps[step].agent {
            self.plan_agent(firing, fence);
        }
        let plan = self.scenario.dialect == Dialect::Plan;
        let timeout_ms = self.scenario.steps[step].timeout_ms;
        if self.rng.percent(self.trouble / 4) {
            let generation = self.state.head.generation;
            let started = self.rng.percent(70);
            // A lost worker may still answer, too late.
            if self.rng.percent(50) {
                let late = self.reply();
                self.plan_in(3 * LEASE_MS, Happening::Answer { firing, fence, reply: late, sets: None });
            }
            let happening = if plan {
                Happening::WorkerDies { generation }
            } else {
                Happening::Lose { firing, fence, started }
            };
            return self.plan_in(LEASE_MS, happening);
        }
        let takes = self.rng.between(0, 3_000);
        if let Some(timeout_ms) = timeout_ms.filter(|timeout_ms| *timeout_ms < takes) {
            let at = self.now + timeout_ms as i64;
            self.agenda.plan(at, Happening::TimeOut { firing, fence });
            // A worker that does not notice answers later still.
            if self.rng.percent(60) {
                return;
            }
        }
        if let Some(timeout_ms) = timeout_ms.filter(|timeout_ms| *timeout_ms >= takes) {
            // The keeper of the lease may be slow to forget its timer.
            if self.rng.percent(50) {
                let at = self.now + (timeout_ms.max(takes + 1) + self.rng.below(4_000)) as i64;
                self.agenda.plan(at, Happening::TimeOut { firing, fence });
            }
        }
        let reply = self.reply();
        let sets = self.rng.percent(15).then(|| (self.rng.index(FLAGS), self.rng.percent(70)));
        let at = self.now + takes as i64;
        self.agenda.plan(at, Happening::Answer { firing, fence, reply, sets });
    }

    /// An agent asks a few times while it works, and sometimes again what it asked before.
    fn plan_agent(&mut self, firing: Firing, fence: u64) {
        let tools: Vec<usize> =
            (0..self.scenario.steps.len()).filter(|step| self.scenario.steps[*step].tool).collect();
        for _ in 0..self.rng.below(4) {
            let step = *self.rng.pick(&tools);
            let wish = match self.rng.below(100) {
                0..=74 => Wish::Execute { step, arg: self.rng.percent(50).then(|| self.rng.below(9) as i64) },
                75..=86 => Wish::Skip { step },
                87..=95 => Wish::Pause,
                _ => Wish::Fail,
            };
            if wish == Wish::Pause {
                self.plan_in(9_000, Happening::Resume);
            }
            self.calls += 1;
            let call = self.calls;
            self.plan_in(3_000, Happening::Agent { firing, fence, call, wish });
            if self.rng.percent(30) {
                self.plan_in(3_500, Happening::Agent { firing, fence, call, wish });
            }
        }
    }

    fn reply(&mut self) -> Reply {
        if !self.rng.percent(self.trouble) {
            return Reply::Done { n: self.rng.below(11) as i64 };
        }
        match self.rng.below(10) {
            0 => Reply::Later { ms: self.rng.between(1, 3_000) },
            1..=2 => Reply::Failed(Class::Permanent),
            3..=4 => Reply::Failed(Class::Unknown),
            _ => Reply::Failed(Class::Transient),
        }
    }

    fn plan_wait(&mut self, firing: Firing, step: usize, what: Waits) {
        match what {
            Waits::Delay => {}
            Waits::Route => {
                if self.rng.percent(85) {
                    self.plan_in(4_000, Happening::RouteReady { firing });
                }
            }
            Waits::Person => self.plan_person(firing, step),
            Waits::Child => {
                let Some((fence, _)) = self.children.get(&firing).copied() else { return };
                let reply = match self.reply() {
                    Reply::Later { .. } => Reply::Cancelled,
                    reply => reply,
                };
                self.plan_in(5_000, Happening::ChildEnds { firing, fence, reply });
            }
        }
    }

    fn plan_person(&mut self, firing: Firing, step: usize) {
        let Some(fence) = self.fence_of(firing) else { return };
        let deadline = match (&self.scenario.steps[step].work, &self.scenario.steps[step].manual) {
            (Work::Approval(manual), _) | (_, Some(manual)) => manual.deadline_ms,
            _ => None,
        };
        let verdict = match self.rng.below(100) {
            0..=69 => Verdict::Succeeded,
            70..=89 => Verdict::Failed,
            _ => Verdict::Cancelled,
        };
        if self.rng.percent(20) {
            self.plan_in(3_000, Happening::Person { firing, fence, verdict, right: false });
        }
        // With a deadline a person may never come.
        if deadline.is_none() || self.rng.percent(60) {
            self.plan_in(6_000, Happening::Person { firing, fence, verdict, right: true });
        }
    }

    fn plan_stop(&mut self, firing: Firing) {
        if let Some((fence, _)) = self.children.get(&firing).copied() {
            return self.plan_in(1_000, Happening::ChildEnds { firing, fence, reply: Reply::Cancelled });
        }
        if let Some(fence) = self.fence_of(firing)
            && self.rng.percent(70)
        {
            self.plan_in(1_000, Happening::Answer { firing, fence, reply: Reply::Stopped, sets: None });
        }
    }

    pub(super) fn fence_of(&self, firing: Firing) -> Option<u64> {
        self.state.run(windlass_kernel::RunId(firing))?.fence.map(|fence| fence.0)
    }
}
