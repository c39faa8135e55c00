//! Actions of the lane, carried out in the simulated world. The oracle sees each of them first.

use super::Ticket;
use crate::invariants::Broken;
use crate::system::sabotage::Sabotage;
use crate::system::workers::{EngineReply, SentMessage};
use crate::system::world::{Happening, World};
use windlass_engine::{Effect, EngineAnswer};
use windlass_protocol::{Call, Order, Registered, Reply, SessionId};

impl World {
    pub(super) fn act(&mut self, effect: Effect<Ticket>) -> Result<(), Broken> {
        match effect {
            Effect::Answer(Ticket::User(ask), answer) => self.answered(ask, answer),
            Effect::Answer(Ticket::Worker { worker, life, sent }, answer) => {
                self.answer_worker(worker, life, *sent, answer)
            }
            Effect::SessionOpen(registered, ticket) => self.open_session(registered, ticket),
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
            Effect::Serve(request, _) => {
                Err(Broken::new("protocol", format!("no simulated worker asks for {request:?}")))
            }
            // The simulation has no subscribers.
            Effect::Changed(_) => Ok(()),
            Effect::Stopped => self.stopped(),
            Effect::Quarantined(id, reason) => {
                Err(Broken::new("legality", format!("the engine quarantines execution {id}: {reason}")))
            }
            Effect::Fatal(fatal) => match fatal {
                windlass_engine::Fatal::Store(_) => self.engine_dies("its disk failed"),
                windlass_engine::Fatal::Died => {
                    Err(Broken::new("legality", format!("the engine fails: {fatal}")))
                }
            },
        }
    }

    fn open_session(&mut self, registered: Registered, ticket: Ticket) -> Result<(), Broken> {
        let session = registered.session;
        let Ticket::Worker { worker, life, sent } = ticket else {
            return Err(Broken::new("protocol", "a session was opened for a user".to_owned()));
        };
        self.watch.leases.opened(session);
        if let Some(engine) = &mut self.engine {
            engine.sessions.insert(session, (worker, life, sent.caller.clone()));
        }
        let reply = Reply::Registered(registered);
        self.send_to_worker(worker, life, EngineReply { caller: sent.caller, reply, session: None });
        Ok(())
    }

    fn answer_worker(
        &mut self,
        worker: usize,
        life: u32,
        sent: SentMessage,
        answer: EngineAnswer,
    ) -> Result<(), Broken> {
        let SentMessage { caller, call } = sent;
        let reply = match answer {
            EngineAnswer::Stopping => return Ok(()),
            EngineAnswer::Reply(reply) => reply,
            other => {
                return Err(Broken::new("protocol", format!("a worker's {call:?} was answered {other:?}")));
            }
        };
        match (&call, &reply) {
            (Call::Leave(_), _) => return Ok(()),
            (Call::Beat(_), Reply::Verdict(_)) => {}
            (Call::Checkpoint(checkpoint), Reply::Verdict(verdict)) => {
                let unit = checkpoint.unit;
                self.watch.kept(unit, &checkpoint.cursor, *verdict, &mut self.eyes)?;
                self.log.record(self.now, || format!("checkpoint of {}: {verdict:?}", name(unit)));
            }
            (Call::Report(report), Reply::Verdict(verdict)) => {
                self.watch.judged(report, *verdict)?;
                self.log.record(self.now, || format!("report of {}: {verdict:?}", name(report.unit)));
            }
            (Call::Agent(call), Reply::Agent(answer)) => {
                self.watch.agent_was_answered(call, answer)?;
                self.log
                    .record(self.now, || format!("call {} of {}: {answer:?}", call.call, name(call.unit)));
                if self.sabotage == Some(Sabotage::AgentAnswerLost) && self.rng.percent(30) {
                    return Ok(());
                }
            }
            (
                Call::Register(_)
                | Call::Beat(_)
                | Call::Checkpoint(_)
                | Call::Report(_)
                | Call::Agent(_)
                | Call::Progress(_)
                | Call::Log(_)
                | Call::Resource(_),
                _,
            ) => {
                return Err(Broken::new("protocol", format!("a worker's {call:?} was answered {reply:?}")));
            }
        }
        self.send_to_worker(worker, life, EngineReply { caller, reply, session: None });
        Ok(())
    }

    fn order(&mut self, session: SessionId, order: Order) -> Result<(), Broken> {
        self.watch.ordered(session, &order)?;
        let Some(engine) = &self.engine else { return Ok(()) };
        // Messages for a session that the process does not know are dropped.
        let Some((worker, life, caller)) = engine.sessions.get(&session).cloned() else { return Ok(()) };
        self.log.record(self.now, || match &order {
            Order::Run(work) => format!("worker {worker} gets {} of step {}", name(work.unit), work.step),
            Order::Stop { unit, .. } => format!("worker {worker} is ordered to stop {}", name(*unit)),
            Order::Unknown => format!("worker {worker} learns that its session is unknown"),
        });
        let heard = EngineReply { caller, reply: Reply::Order(order), session: Some(session) };
        self.send_to_worker(worker, life, heard);
        Ok(())
    }

    fn send_to_worker(&mut self, worker: usize, life: u32, heard: EngineReply) {
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
        self.log.record(self.now, || "the engine has stopped".to_owned());
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
    crate::system::event_text::format_unit(unit)
}
