//! Happenings become inputs.

use super::World;
use super::happen::Happening;
use crate::invariants::Broken;
use crate::lower::flag_name;
use crate::seen::{Ask, Bell, Class, Firing, Reply, Verdict, What, Wish};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::*;

impl World {
    pub(super) fn happen(&mut self, happening: Happening) -> Result<(), Broken> {
        match happening {
            Happening::Timer(timer) => self.ring(timer),
            Happening::Hold => self.ask(Ask::Hold, Input::Hold { by: "user".into(), reason: String::new() }),
            Happening::Resume => self.ask(Ask::Resume, Input::Resume { by: "user".into() }),
            Happening::Cancel { force, compensate } => {
                let cancel = Cancel { by: "user".into(), reason: String::new(), force, compensate };
                self.ask(Ask::Cancel { force, compensate }, Input::Cancel(cancel))
            }
            Happening::Patch { flag, value } => {
                let input = Input::Patch { patch: flag_patch(Some((flag, value))), by: "user".into() };
                self.ask(Ask::Patch { flag, value }, input)
            }
            Happening::RouteReady { firing } => {
                self.ask(Ask::RouteReady { firing }, Input::RouteReady { run: RunId(firing) })
            }
            Happening::Assign => {
                let input = Input::Assign { worker: "w1".into() };
                self.give(input, |accepted| Some(What::Assigned { accepted })).map(drop)
            }
            Happening::Begin => self.give(Input::Begin, |accepted| Some(What::Begun { accepted })).map(drop),
            Happening::Uploads { failed } => {
                let failure = failed.then(|| Failure::new(codes::DISK_FULL, "no space"));
                let shown = |accepted| Some(What::Uploaded { failed, accepted });
                self.give(Input::Uploaded { failure }, shown).map(drop)
            }
            Happening::WorkerDies { generation } => self.worker_dies(generation),
            Happening::Lose { firing, fence, started } => self.lose(firing, fence, started),
            Happening::TimeOut { firing, fence } => {
                let timer = Timer::Attempt { run: RunId(firing), fence: Fence(fence) };
                let shown = |accepted| Some(What::AttemptTimedOut { firing, fence, accepted });
                self.give(Input::TimerDue(timer), shown).map(drop)
            }
            Happening::Answer { firing, fence, reply, sets } => self.answer(firing, fence, reply, sets),
            Happening::ChildEnds { firing, fence, reply } => self.child_ends(firing, fence, reply),
            Happening::Person { firing, fence, verdict, right } => self.person(firing, fence, verdict, right),
            Happening::Agent { firing, fence, call, wish } => self.agent(firing, fence, call, wish),
            Happening::Again(input) => self.again(*input),
            Happening::Nonsense => self.nonsense(),
        }
    }

    fn ask(&mut self, ask: Ask, input: Input) -> Result<(), Broken> {
        self.give(input, |accepted| Some(What::Asked { ask, accepted })).map(drop)
    }

    fn ring(&mut self, timer: Timer) -> Result<(), Broken> {
        let bell = match timer {
            // Simulated executions start at once.
            Timer::Start => return Ok(()),
            Timer::Deadline => Bell::Deadline,
            Timer::Backoff { run } => Bell::Backoff { firing: run.0 },
            Timer::Delay { run } => Bell::Delay { firing: run.0 },
            Timer::Routing { run } => Bell::Route { firing: run.0 },
            Timer::Gate { step, .. } => Bell::Gate { step: step.index() },
            Timer::Manual { run } => Bell::Person { firing: run.0 },
            Timer::Attempt { run, .. } => Bell::Child { firing: run.0 },
        };
        self.give(Input::TimerDue(timer), |accepted| Some(What::Rang { timer: bell, accepted })).map(drop)
    }

    fn worker_dies(&mut self, generation: u32) -> Result<(), Broken> {
        let lost = LeaseLost { unit: LeaseUnit::Execution { generation }, loss: Loss::Started, cursor: None };
        let shown = |accepted| Some(What::LostWhole { generation, accepted });
        self.give(Input::LeaseLost(lost), shown).map(drop)
    }

    fn lose(&mut self, firing: Firing, fence: u64, started: bool) -> Result<(), Broken> {
        let unit = LeaseUnit::Run { run: RunId(firing), fence: Fence(fence) };
        let lost = LeaseLost { unit, loss: Loss::of(started), cursor: None };
        self.give(Input::LeaseLost(lost), |accepted| Some(What::Lost { firing, fence, started, accepted }))
            .map(drop)
    }

    fn answer(
        &mut self,
        firing: Firing,
        fence: u64,
        reply: Reply,
        sets: Option<(usize, bool)>,
    ) -> Result<(), Broken> {
        let patch = flag_patch(sets);
        let report = Report {
            run: RunId(firing),
            fence: Fence(fence),
            result: result(reply),
            patch,
            times: None,
            metadata: None,
            cursor: None,
        };
        let input = Input::Report(Box::new(report));
        let shown = |accepted| Some(What::Reported { firing, fence, result: reply, sets, accepted });
        let accepted = self.give(input.clone(), shown)?;
        self.remember(accepted, input);
        if accepted && self.rng.percent(self.trouble / 4) {
            // A user contradicts an answer that was already accepted.
            let other = Reply::Done { n: 77 };
            let at = self.now + self.rng.between(0, 2_000) as i64;
            self.agenda.plan(at, Happening::Answer { firing, fence, reply: other, sets: None });
        }
        Ok(())
    }

    /// Accepted answers may be sent again.
    fn remember(&mut self, accepted: bool, input: Input) {
        if accepted && self.rng.percent(10 + self.trouble / 2) {
            let at = self.now + self.rng.between(0, 4_000) as i64;
            self.agenda.plan(at, Happening::Again(Box::new(input)));
        }
    }

    fn again(&mut self, input: Input) -> Result<(), Broken> {
        let shown = match &input {
            Input::Report(report) => {
                let (result, sets) = (reply(&report.result), sets(&report.patch));
                Some(What::Reported {
                    firing: report.run.0,
                    fence: report.fence.0,
                    result,
                    sets,
                    accepted: false,
                })
            }
            Input::Complete { run, note, .. } => {
                let ask = Ask::Complete { firing: run.0, outcome: verdict(note), open: true, repeated: true };
                Some(What::Asked { ask, accepted: false })
            }
            _ => None,
        };
        let fill = |accepted: bool| match shown {
            Some(What::Reported { firing, fence, result, sets, .. }) => {
                Some(What::Reported { firing, fence, result, sets, accepted })
            }
            Some(What::Asked { ask, .. }) => Some(What::Asked { ask, accepted }),
            other => other,
        };
        self.give(input, fill).map(drop)
    }

    fn agent(&mut self, firing: Firing, fence: u64, call: u32, wish: Wish) -> Result<(), Broken> {
        let id = |step: usize| StepId(u32::try_from(step).unwrap_or(u32::MAX));
        let ask = match wish {
            Wish::Execute { step, arg } => {
                AgentAsk::Execute { step: id(step), args: arg.map(|a| Arc::new(json!({ "a": a }))) }
            }
            Wish::Skip { step } => AgentAsk::Skip { step: id(step), reason: String::new() },
            Wish::Pause => AgentAsk::Pause { reason: String::new() },
            Wish::Fail => AgentAsk::Fail { failure: failure(Class::Transient) },
        };
        let input = Input::Agent { run: RunId(firing), fence: Fence(fence), call: format!("c{call}"), ask };
        self.ask(Ask::Agent { firing, fence, call, wish }, input)
    }

    fn child_ends(&mut self, firing: Firing, fence: u64, reply: Reply) -> Result<(), Broken> {
        let Some((_, child)) = self.children.get(&firing).copied() else { return Ok(()) };
        let (outcome, failure) = match reply {
            Reply::Failed(class) => (Outcome::Failed, Some(failure(class))),
            Reply::Done { .. } => (Outcome::Completed, None),
            Reply::Cancelled | Reply::Stopped | Reply::Later { .. } => (Outcome::Cancelled, None),
        };
        let output = Arc::new(match reply {
            Reply::Done { n } => json!({ "n": n }),
            _ => json!(null),
        });
        // A second mail about the same child is the same child's end and cannot come: mail is exactly once.
        let open = self
            .state
            .run(RunId(firing))
            .is_some_and(|run| matches!(run.state, RunState::Child { fence: f, .. } if f.0 == fence));
        if !open {
            return Ok(());
        }
        let result = ChildResult { outcome, output, failure };
        let input = Input::ChildEnded { run: RunId(firing), fence: Fence(fence), child, result };
        self.give(input, |accepted| Some(What::ChildEnded { firing, result: reply, accepted })).map(drop)
    }

    fn person(&mut self, firing: Firing, fence: u64, verdict: Verdict, right: bool) -> Result<(), Broken> {
        let outcome = match verdict {
            Verdict::Succeeded => ManualOutcome::Succeeded,
            Verdict::Failed => ManualOutcome::Failed,
            Verdict::Cancelled => ManualOutcome::Cancelled,
        };
        let note = ManualNote { outcome, actor: "person".into(), ..ManualNote::default() };
        let given = if right { fence } else { fence + 1_000 };
        let input =
            Input::Complete { run: RunId(firing), fence: Fence(given), note: Box::new(note), seen: None };
        let ask = Ask::Complete { firing, outcome: verdict, open: right, repeated: false };
        let accepted = self.give(input.clone(), |accepted| Some(What::Asked { ask, accepted }))?;
        self.remember(accepted, input);
        Ok(())
    }

    /// Inputs that name nothing that exists: refused, and nothing changes.
    fn nonsense(&mut self) -> Result<(), Broken> {
        let run = RunId(self.rng.bits() >> 8);
        let fence = Fence(self.rng.bits() >> 8);
        let done = WorkResult::Done { output: Arc::new(json!(1)) };
        let input = match self.rng.below(8) {
            0 => Input::Report(Box::new(Report {
                run,
                fence,
                result: done,
                patch: Patch::new(),
                times: None,
                metadata: None,
                cursor: None,
            })),
            1 => Input::LeaseLost(LeaseLost {
                unit: LeaseUnit::Run { run, fence },
                loss: Loss::Started,
                cursor: None,
            }),
            2 => Input::LeaseLost(LeaseLost {
                unit: LeaseUnit::Execution { generation: 77 },
                loss: Loss::Started,
                cursor: None,
            }),
            3 => Input::TimerDue(Timer::Backoff { run }),
            4 => Input::RouteReady { run },
            5 => Input::Patch { patch: Patch::new(), by: "user".into() },
            6 => {
                Input::Agent { run, fence, call: "c".into(), ask: AgentAsk::Pause { reason: String::new() } }
            }
            _ => Input::Continue,
        };
        let before = self.state.clone();
        let accepted = self.give(input.clone(), |_| None)?;
        if accepted || before != self.state {
            return Err(Broken::new("bad input", format!("{input:?} was accepted")));
        }
        Ok(())
    }
}

fn flag_patch(sets: Option<(usize, bool)>) -> Patch {
    sets.into_iter().map(|(flag, value)| (flag_name(flag), Arc::new(json!(value)))).collect()
}

fn sets(patch: &Patch) -> Option<(usize, bool)> {
    let (key, value) = patch.iter().next()?;
    Some((key.strip_prefix('k')?.parse().ok()?, value.as_bool()?))
}

fn failure(class: Class) -> Failure {
    let class = match class {
        Class::Transient => ErrorClass::Transient5xx,
        Class::Permanent => ErrorClass::Validation,
        Class::Unknown => ErrorClass::Unknown,
    };
    Failure::of_class(class, "SIMULATED", "the simulated worker failed")
}

fn result(reply: Reply) -> WorkResult {
    match reply {
        Reply::Done { n } => WorkResult::Done { output: Arc::new(json!({ "n": n })) },
        Reply::Failed(class) => WorkResult::Failed(failure(class)),
        Reply::Stopped | Reply::Cancelled => WorkResult::Stopped,
        Reply::Later { ms } => WorkResult::Later { delay_ms: ms, cursor: None },
    }
}

fn reply(result: &WorkResult) -> Reply {
    match result {
        WorkResult::Done { output } => Reply::Done { n: output["n"].as_i64().unwrap_or(-1) },
        WorkResult::Failed(failure) => Reply::Failed(match failure.class {
            ErrorClass::Unknown => Class::Unknown,
            class if class.retryable() == Some(false) => Class::Permanent,
            _ => Class::Transient,
        }),
        WorkResult::Stopped => Reply::Stopped,
        WorkResult::Later { delay_ms, .. } => Reply::Later { ms: *delay_ms },
        WorkResult::Child { .. } => unreachable!("no simulated worker waits for another execution"),
    }
}

fn verdict(note: &ManualNote) -> Verdict {
    match note.outcome {
        ManualOutcome::Succeeded => Verdict::Succeeded,
        ManualOutcome::Failed => Verdict::Failed,
        ManualOutcome::Cancelled => Verdict::Cancelled,
    }
}
