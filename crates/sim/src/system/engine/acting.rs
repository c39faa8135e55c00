//! What the lane wants done, done in the simulated world. The oracle hears every word before anybody else.

use super::{About, Ticket};
use crate::invariants::Broken;
use crate::system::sabotage::Sabotage;
use crate::system::workers::{Heard, heard};
use crate::system::world::{Happening, World};
use windlass_engine::{Answer, Effect};
use windlass_protocol::{Order, SessionId};
use windlass_worker::session::Input;

impl World {
    pub(super) fn act(&mut self, effect: Effect<Ticket>) -> Result<(), Broken> {
        match effect {
            Effect::Answer(Ticket::User(ask), answer) => self.answered(ask, answer),
            Effect::Answer(Ticket::Worker { worker, life, about }, answer) => {
                self.answer_worker(worker, life, about, answer)
            }
            Effect::Write(batch) => self.hand_over(batch),
            Effect::Read(id, lookup) => {
                self.look_for(id, lookup);
                Ok(())
            }
            Effect::Order(session, order) => self.order(session, order),
            Effect::SessionOver(session) => {
                if let Some(engine) = &mut self.engine {
                    engine.sessions.remove(&session);
                }
                Ok(())
            }
            // Nobody watches here.
            Effect::Changed(_) => Ok(()),
            Effect::Stopped => self.stopped(),
            Effect::Quarantined(id, reason) => {
                Err(Broken::new("legality", format!("the engine quarantines execution {id}: {reason}")))
            }
            Effect::Fatal(fatal) => match fatal {
                windlass_engine::Fatal::Store(_) => self.engine_dies("its disk failed"),
                windlass_engine::Fatal::Died => {
                    Err(Broken::new("legality", format!("the engine gives up: {fatal}")))
                }
            },
        }
    }

    fn answer_worker(
        &mut self,
        worker: usize,
        life: u32,
        about: About,
        answer: Answer,
    ) -> Result<(), Broken> {
        let input = match (about, answer) {
            (About::Leave, _) | (_, Answer::Stopping) => return Ok(()),
            (About::Registration(number), Answer::Registered(session)) => {
                self.watch.leases.opened(session);
                if let Some(engine) = &mut self.engine {
                    engine.sessions.insert(session, (worker, life, number));
                }
                Input::Registered { number, session }
            }
            (About::Beat(number), Answer::Verdict(verdict)) => Input::BeatAnswered { number, verdict },
            (About::Checkpoint(unit, number, cursor), Answer::Verdict(verdict)) => {
                self.watch.kept(unit, &cursor, verdict, &mut self.eyes)?;
                self.telling.say(self.now, || format!("checkpoint of {}: {verdict:?}", name(unit)));
                Input::CheckpointAnswered { unit, number, verdict }
            }
            (About::Report(report), Answer::Verdict(verdict)) => {
                self.watch.judged(&report, verdict)?;
                let unit = report.unit;
                self.telling.say(self.now, || format!("report of {}: {verdict:?}", name(unit)));
                Input::ReportAnswered { unit, verdict }
            }
            (About::Agent(call), Answer::Agent(told)) => {
                self.watch.told_agent(&call, &told)?;
                self.telling.say(self.now, || format!("call {} of {}: {told:?}", call.call, name(call.unit)));
                let lost = self.sabotage == Some(Sabotage::AgentAnswerLost) && self.rng.percent(30);
                if !lost {
                    self.send_to_worker(worker, life, heard(&call, told));
                }
                return Ok(());
            }
            (about, answer) => {
                let what = format!("a worker's {about:?} was answered {answer:?}");
                return Err(Broken::new("protocol", what));
            }
        };
        self.send_to_worker(worker, life, Heard::Answer(input));
        Ok(())
    }

    fn order(&mut self, session: SessionId, order: Order) -> Result<(), Broken> {
        self.watch.ordered(session, &order)?;
        let Some(engine) = &self.engine else { return Ok(()) };
        // Nobody listens under a session that the process does not know.
        let Some((worker, life, number)) = engine.sessions.get(&session).copied() else { return Ok(()) };
        self.telling.say(self.now, || match &order {
            Order::Run(work) => format!("worker {worker} gets {} of step {}", name(work.unit), work.step),
            Order::Stop { unit, .. } => format!("worker {worker} is told to stop {}", name(*unit)),
            Order::Unknown => format!("worker {worker} is told that its session is unknown"),
        });
        self.send_to_worker(worker, life, Heard::Order(session, number, order));
        Ok(())
    }

    fn send_to_worker(&mut self, worker: usize, life: u32, heard: Heard) {
        let from = self.life;
        let arrivals = match self.plan.embedded {
            true => vec![self.now],
            false => self.network.send(worker, self.now, &mut self.rng),
        };
        for at in arrivals {
            let heard = Box::new(heard.clone());
            self.agenda.plan(at, Happening::Hears { worker, life, heard, from });
        }
    }

    /// The engine ended because it was asked to: everyone who asked has been answered.
    fn stopped(&mut self) -> Result<(), Broken> {
        let Some(engine) = self.engine.take() else { return Ok(()) };
        self.telling.say(self.now, || "the engine has stopped".to_owned());
        if !engine.writing.is_empty() {
            return Err(Broken::new("stop", "the engine stopped with a batch on its way to the disk"));
        }
        if let Some(wish) = self.users.unanswered(engine.life) {
            return Err(Broken::new("stop", format!("{wish:?} was never answered")));
        }
        self.crash(None)?;
        self.engine_is_gone()
    }
}

pub(in crate::system) fn name(unit: windlass_protocol::Unit) -> String {
    crate::system::telling::unit(unit)
}
