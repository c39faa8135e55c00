//! Users: they define, start, watch and meddle, and remember every answer. Some write from another process, through the
//! inbox.

use super::engine::{Ticket, broken};
use super::plan::Plan;
use super::store::Fate;
use super::watch::{Ask, Memory, Wish, at};
use super::world::{Happening, World};
use crate::generate::FLAGS;
use crate::invariants::Broken;
use windlass_engine::{EngineAnswer, Wake};
use windlass_kernel::{ExecutionId, ManualOutcome, Phase, RunState, StartWhen};
use windlass_store::{Applied, DefinitionId, Letter, Mail, MailId, Query, Reader, Status, Write};

/// Time after which a user who got no answer tries again.
const AGAIN_MS: u64 = 700;
/// Percentage of scripts that send more requests than fit in one commit.
const FLOODS: u64 = 1;
const FLOOD: usize = 300;
/// Interval at which a user looks for an answer in the inbox.
const LOOK_MS: u64 = 1_500;

#[derive(Debug, Default)]
pub(super) struct Users {
    pub memory: Memory,
    defined: Vec<DefinitionId>,
    started: usize,
    /// Letters that wait for an answer.
    letters: usize,
}

impl Users {
    pub fn have_started(&self, plan: &Plan) -> bool {
        self.started >= plan.starts.len() && self.letters == 0
    }

    /// Life of the engine to which the request was sent and in which it was not answered.
    pub fn unanswered(&self, life: u32) -> Option<&Wish> {
        self.memory.asks.iter().find(|ask| ask.life == life && ask.answer.is_none()).map(|ask| &ask.wish)
    }
}

impl World {
    /// A user wants something and asks the engine for it.
    pub(super) fn wishes(&mut self, wish: Wish) -> Result<(), Broken> {
        let by_letter = !self.kind && wish.input(0).is_some() && self.rng.percent(15);
        let since = wish.about().map_or(0, |id| self.watch.version(id));
        let ask = self.users.memory.asks.len();
        self.users.memory.asks.push(Ask { wish, since, life: 0, answer: None });
        if by_letter { self.write_letter(ask) } else { self.asks(ask) }
    }

    pub(super) fn asks(&mut self, number: usize) -> Result<(), Broken> {
        if self.engine.is_none() {
            self.agenda.plan(self.now + AGAIN_MS, Happening::Asks { ask: number });
            return Ok(());
        }
        let life = self.life;
        let ask = &mut self.users.memory.asks[number];
        ask.life = life;
        let wish = ask.wish.clone();
        self.log.record(self.now, || format!("ask {number}: {wish:?}"));
        let request = wish.request(number, &self.plan.definitions);
        self.wake(Wake::Ask(request, Ticket::User(number)));
        Ok(())
    }

    pub(super) fn answered(&mut self, number: usize, answer: EngineAnswer) -> Result<(), Broken> {
        let ask = &self.users.memory.asks[number];
        self.watch.was_answered(number, ask, &answer)?;
        self.log.record(self.now, || format!("ask {number} is answered: {answer:?}"));
        if ask.answer.is_some() {
            return Err(Broken::new("answered once", format!("ask {number} was answered twice")));
        }
        let wish = ask.wish.clone();
        self.log.hash_value(&format!("{answer:?}"));
        self.users.memory.asks[number].answer = Some(answer.clone());
        self.react(&wish, &answer);
        Ok(())
    }

    fn react(&mut self, wish: &Wish, answer: &EngineAnswer) {
        match (wish, answer) {
            (Wish::Define(_), EngineAnswer::Defined { id, .. }) if !self.users.defined.contains(id) => {
                self.users.defined.push(*id);
            }
            (Wish::Start { .. }, EngineAnswer::Started(id)) => {
                self.users.started += 1;
                let count = self.rng.below(self.plan.meddling + 1);
                for _ in 0..count {
                    let at = self.now + self.rng.below(20_000);
                    self.agenda.plan(at, Happening::Meddles(*id));
                }
                if self.rng.percent(70) {
                    let at = self.now + self.rng.below(3_000);
                    self.agenda.plan(at, Happening::Wishes(Wish::Await(*id)));
                }
            }
            // The execution waits for people, so the user looks again later.
            (Wish::Await(id), EngineAnswer::Rested(Phase::Paused)) => {
                let at = self.now + 3_000;
                self.agenda.plan(at, Happening::Wishes(Wish::Await(*id)));
            }
            (_, EngineAnswer::Stopping) => {
                self.agenda.plan(self.now + AGAIN_MS, Happening::Wishes(wish.clone()))
            }
            _ => {}
        }
    }

    /// Repeats the requests that were not answered when the engine ended: their outcome is unknown.
    pub(super) fn repeat_unanswered(&mut self, life: u32) {
        let open = |ask: &&Ask| ask.life == life && ask.answer.is_none();
        let wishes: Vec<Wish> =
            self.users.memory.asks.iter().filter(open).map(|ask| ask.wish.clone()).collect();
        for wish in wishes {
            let at = self.now + self.rng.below(AGAIN_MS);
            self.agenda.plan(at, Happening::Wishes(wish));
        }
    }

    /// Starts an execution as soon as everything is defined.
    pub(super) fn starts(&mut self) -> Result<(), Broken> {
        if self.users.defined.len() < self.plan.definitions.len() {
            self.agenda.plan(self.now + AGAIN_MS, Happening::Starts);
            return Ok(());
        }
        let definition = *self.rng.pick(&self.users.defined);
        let when = match self.rng.below(10) {
            0 => StartWhen::Called,
            1 => at(self.wall(), self.rng.below(20_000)),
            _ => StartWhen::Now,
        };
        self.wishes(Wish::Start { definition, when })
    }

    pub(super) fn meddles(&mut self, id: ExecutionId) -> Result<(), Broken> {
        if self.kind {
            return Ok(());
        }
        // Some lose patience and want several things at once.
        for _ in 0..*self.rng.pick(&[1, 1, 1, 3]) {
            self.meddle_once(id)?;
        }
        if self.rng.below(100) < FLOODS {
            for _ in 0..FLOOD {
                self.wishes(Wish::Patch { id, flags: vec![(0, true)] })?;
            }
        }
        Ok(())
    }

    fn meddle_once(&mut self, id: ExecutionId) -> Result<(), Broken> {
        let wish = match self.rng.below(100) {
            0..=24 => Wish::Patch { id, flags: vec![(self.rng.index(FLAGS), self.rng.percent(80))] },
            25..=44 => Wish::Hold(id),
            45..=64 => Wish::Resume(id),
            65..=79 => Wish::Cancel { id, force: self.rng.percent(30), compensate: self.rng.percent(40) },
            80..=85 => Wish::Begin(id),
            _ => return self.complete_something(id),
        };
        self.wishes(wish)
    }

    fn complete_something(&mut self, id: ExecutionId) -> Result<(), Broken> {
        let waits = self.waiting_for_people(id)?;
        if waits.is_empty() {
            return Ok(());
        }
        let wish = self.rng.pick(&waits).clone();
        self.wishes(wish)
    }

    /// Actions that people can take on an execution, according to its state on disk.
    fn waiting_for_people(&mut self, id: ExecutionId) -> Result<Vec<Wish>, Broken> {
        let stored = self.eyes.load(id).map_err(broken)?;
        let Some(state) = stored.map(|stored| stored.state) else { return Ok(Vec::new()) };
        let mut wishes = Vec::new();
        for (run, step_run) in state.runs.iter() {
            match &step_run.state {
                RunState::Manual { fence, .. } => {
                    let (run, fence, outcome) = (*run, *fence, self.word());
                    wishes.push(Wish::Complete { id, run, fence, outcome });
                }
                RunState::Waiting { .. } => wishes.push(Wish::RouteReady { id, run: *run }),
                _ => {}
            }
        }
        Ok(wishes)
    }

    fn word(&mut self) -> ManualOutcome {
        match self.rng.below(10) {
            0 => ManualOutcome::Failed,
            1 => ManualOutcome::Cancelled,
            _ => ManualOutcome::Succeeded,
        }
    }

    /// Answers everything that waits for people when the world is kind.
    pub(super) fn look_after(&mut self) -> Result<(), Broken> {
        let query = Query { status: Some(Status::Open), limit: 1_000, ..Query::default() };
        let open = self.eyes.list(&query).map_err(broken)?;
        for listed in open {
            let id = listed.execution;
            if listed.held {
                self.wishes(Wish::Resume(id))?;
            }
            match listed.phase {
                Phase::Queued => self.wishes(Wish::Begin(id))?,
                Phase::Paused => {
                    let flags = (0..FLAGS).map(|flag| (flag, true)).collect();
                    self.wishes(Wish::Patch { id, flags })?;
                }
                _ => {}
            }
            for wish in self.waiting_for_people(id)? {
                self.wishes(wish)?;
            }
        }
        Ok(())
    }

    /// Sends a request from another process: its input goes to the inbox, and its answer is read there.
    fn write_letter(&mut self, number: usize) -> Result<(), Broken> {
        let wish = self.users.memory.asks[number].wish.clone();
        let (Some(to), Some(input)) = (wish.about(), wish.input(number)) else { return Ok(()) };
        let mail = Mail { to, letter: Letter::Input(input), answered: true, at: self.wall() };
        self.log.record(self.now, || format!("ask {number}, by letter: {wish:?}"));
        let batch = [Write::Accept(mail)];
        let applied = self.depot.write(&batch, Fate::Synced).map_err(broken)?;
        self.watch.synced(&batch, &applied, &mut self.eyes)?;
        if let [Applied::Accepted(id)] = applied[..] {
            self.users.letters += 1;
            self.agenda.plan(self.now + LOOK_MS, Happening::Answers(id, number));
        }
        Ok(())
    }

    pub(super) fn answers(&mut self, mail: MailId, number: usize) -> Result<(), Broken> {
        let Some(answer) = self.eyes.answer(mail).map_err(broken)? else {
            self.agenda.plan(self.now + LOOK_MS, Happening::Answers(mail, number));
            return Ok(());
        };
        self.users.letters -= 1;
        self.log.record(self.now, || format!("the letter of ask {number} is answered: {answer:?}"));
        if answer.is_ok() {
            let ask = &self.users.memory.asks[number];
            self.watch.was_answered(number, ask, &EngineAnswer::Accepted)?;
            self.users.memory.asks[number].answer = Some(EngineAnswer::Accepted);
        }
        let batch = [Write::Fetched { mail }];
        let applied = self.depot.write(&batch, Fate::Synced).map_err(broken)?;
        self.watch.synced(&batch, &applied, &mut self.eyes)
    }
}
