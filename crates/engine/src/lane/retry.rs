//! An ended execution done again as a new one (R12). A playbook forks: the new execution has its journal up to a firing
//! and goes on from there. Elsewhere the new execution imports the steps that are not done again.

use super::Lane;
use super::deciding::{Asker, Pending, What};
use super::live::Place;
use super::reading::Why;
use super::rooms::Starter;
use crate::wake::{Answer, Lookup, NotRetried, Past, Refusal};
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::net::Join;
use windlass_kernel::{
    Changes, Create, Decision, Event, ExecutionId, Forked, Given, Millis, Need, Net, Record, Rejected, Role,
    RunChange, RunId, StartWhen, StepId, Values, any_of, can_be_retried, fork, redo, replay,
};
use windlass_store::{Creation, Origin, Retry, RetryFrom};

/// A retry whose past is being read.
#[derive(Debug)]
pub(super) struct Retrying<R> {
    id: ExecutionId,
    retry: Retry,
    asker: Asker<R>,
}

impl<R> Retrying<R> {
    pub fn is_awaited(&self) -> bool {
        self.asker.reply.is_some()
    }
}

/// What a fork is made from.
#[derive(Debug)]
pub(super) struct Forking {
    pub creation: Creation,
    /// At first the whole past; then what the new execution has of it.
    pub taken_over: Vec<Record>,
    net: Arc<Net>,
    at: Option<RunId>,
    inputs: Option<Arc<serde_json::Value>>,
}

impl Forking {
    /// What the new execution does at once; `taken_over` becomes the journal before that.
    fn decide(
        &mut self,
        id: ExecutionId,
        (now, random): (Millis, u64),
        values: &Values,
    ) -> Result<Decision, Rejected> {
        let Forked { mut records, artifacts } = self.forked(id, (now, random), values)?;
        let state = replay(&self.net, &records)?;
        let forked = |record: &Record| matches!(record.event, Event::Forked(_));
        let first = records.iter().rposition(forked).unwrap_or(records.len());
        let own = records.split_off(first);
        self.taken_over = records;
        Ok(Decision { records: own, changes: Changes::whole(&state), artifacts })
    }

    fn forked(
        &self,
        id: ExecutionId,
        (now, random): (Millis, u64),
        values: &Values,
    ) -> Result<Forked, Rejected> {
        let past = &self.taken_over;
        let mut values = values.clone();
        let mut asked = Vec::new();
        loop {
            let given = Given { now, random, values: &values };
            match fork(&self.net, past, self.at, id, self.inputs.clone(), &given) {
                // Whatever a decision reads is in the journal it stands on, or kept beside it.
                Err(Rejected::Needs(needs)) if needs != asked => {
                    values.load(past, &needs);
                    asked = needs;
                }
                decided => return decided,
            }
        }
    }
}

impl<R> Lane<R> {
    pub(super) fn retry(&mut self, id: ExecutionId, retry: Retry, asker: Asker<R>) {
        if self.quarantined.holds(retry.of) {
            let refusal = self.quarantine_refusal(retry.of);
            return self.refuse_retry(id, asker, refusal);
        }
        // Later mail to the new execution waits for its beginning.
        self.executions.put(id, Place::Loading(VecDeque::new()));
        let of = retry.of;
        self.read(Lookup::Past(of), Why::Retry(Box::new(Retrying { id, retry, asker })));
    }

    pub(super) fn past_found(&mut self, retrying: Retrying<R>, past: Option<Box<Past>>) {
        match past {
            Some(past) => {
                let tenant = past.stored.origin.tenant.clone();
                self.begin_in_room(&tenant, Starter::Retry(Box::new(retrying), past));
            }
            None => {
                let refusal = Refusal::NoExecution(retrying.retry.of);
                self.retry_refused(retrying, refusal);
            }
        }
    }

    /// The tenant has room for the new execution.
    pub(super) fn do_again(&mut self, retrying: Retrying<R>, past: Past) {
        let Retrying { id, retry, asker } = retrying;
        self.config.hands.lane.take(id);
        match again(id, retry, past, self.now.wall) {
            Ok(Again::Fork(forking)) => {
                let (net, origin) = (forking.net.clone(), forking.creation.origin.clone());
                self.insert_new(id, &net, origin, asker.pending(What::Fork(Box::new(forking))));
            }
            Ok(Again::Create(net, create, origin)) => self.create(&net, *create, origin, asker),
            Err(refusal) => self.refuse_retry(id, asker, refusal),
        }
    }

    pub(super) fn retry_refused(&mut self, retrying: Retrying<R>, refusal: Refusal) {
        self.refuse_retry(retrying.id, retrying.asker, refusal);
    }

    fn refuse_retry(&mut self, id: ExecutionId, asker: Asker<R>, refusal: Refusal) {
        self.missing(id);
        self.settle_mail(asker.mail, Some(refusal.to_string()));
        if let Some(reply) = asker.reply {
            self.answer(reply, Answer::Refused(refusal));
        }
    }

    pub(super) fn fork(&mut self, id: ExecutionId, mut pending: Pending<R>) {
        let (now, random) = (self.now.wall, self.random_bits());
        let What::Fork(forking) = &mut pending.what else { return };
        let Some(live) = self.executions.get(id) else { return };
        match forking.decide(id, (now, random), &live.values) {
            Ok(decision) => self.decided(id, pending, decision),
            Err(Rejected::Needs(needs)) if needs.iter().all(|need| matches!(need, Need::Artifact(_))) => {
                self.need(id, pending, needs);
            }
            Err(rejected) => self.refused(id, pending, rejected),
        }
    }
}

/// How the new execution begins.
enum Again {
    Fork(Forking),
    Create(Arc<Net>, Box<Create>, Arc<Origin>),
}

fn again(id: ExecutionId, retry: Retry, past: Past, now: Millis) -> Result<Again, Refusal> {
    can_be_retried(&past.journal)?;
    let Past { stored, net, journal } = past;
    let head = &stored.state.head;
    let inputs = retry.inputs.clone().unwrap_or_else(|| head.inputs.clone());
    let mut origin = (*stored.origin).clone();
    origin.options.by = retry.by;
    origin.options.restricted |= retry.restricted;
    let (parent, trigger) = (Some(retry.of), retry.trigger.into());
    let origin = Arc::new(Origin { parent, trigger, key: None, ..origin });
    if net.policy().join == Join::Each {
        let at = retry.from.map(|from| firing(&net, &journal, &from)).transpose()?;
        let creation = Creation { origin, net: net.digest(), inputs, at: now };
        let forking = Forking { creation, taken_over: journal, net, at, inputs: retry.inputs };
        return Ok(Again::Fork(forking));
    }
    let imports = redo(&net, &journal, from_step(&net, retry.from.as_ref())?)?;
    let create = Create {
        imports,
        retry_of: Some(retry.of),
        timeout_ms: head.timeout_ms,
        start: StartWhen::Now,
        ..Create::new(id, (*inputs).clone())
    };
    Ok(Again::Create(net, Box::new(create), origin))
}

fn step(net: &Net, name: &str) -> Result<StepId, NotRetried> {
    net.find(name).ok_or_else(|| {
        let known = net.steps().map(|(_, step)| step.name.clone()).collect();
        NotRetried::NoStep { step: name.to_owned(), known }
    })
}

fn from_step(net: &Net, from: Option<&RetryFrom>) -> Result<Option<StepId>, NotRetried> {
    match from {
        Some(RetryFrom { firing: Some(_), .. }) => Err(NotRetried::NoFirings),
        Some(from) => step(net, &from.step).map(Some),
        None => Ok(None),
    }
}

/// One firing of the step that a retry begins at.
#[derive(Clone, Copy)]
struct Firing {
    run: RunId,
    /// None: it was skipped.
    role: Option<FiringRole>,
    failed: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum FiringRole {
    Routed,
    Final,
}

/// The firing that is named; without a number the first that failed and was not handled, else the newest.
fn firing(net: &Net, journal: &[Record], from: &RetryFrom) -> Result<RunId, NotRetried> {
    let firings = firings(journal, step(net, &from.step)?);
    let step = from.step.clone();
    let fired = u32::try_from(firings.len()).unwrap_or(u32::MAX);
    let chosen = match from.firing {
        Some(number) => number.checked_sub(1).and_then(|place| firings.get(place as usize)),
        None => firings.iter().find(|firing| firing.failed).or(firings.last()),
    };
    match (chosen, from.firing) {
        (Some(Firing { run, role: Some(FiringRole::Routed), .. }), _) => Ok(*run),
        (Some(Firing { role: Some(FiringRole::Final), .. }), _) => Err(NotRetried::Final { step }),
        (Some(_), number) => Err(NotRetried::Skipped { step, firing: number.unwrap_or(fired) }),
        (None, Some(firing)) if fired > 0 => Err(NotRetried::NoFiring { step, firing, fired }),
        (None, _) => Err(NotRetried::NeverFired { step }),
    }
}

/// In the order in which views number them.
fn firings(journal: &[Record], of: StepId) -> Vec<Firing> {
    let mut found: Vec<Firing> = Vec::new();
    for record in journal {
        let Some((run, change)) = record.event.run_change() else { continue };
        match change {
            RunChange::Fired(step, role, _) if step == of => {
                let role = match role {
                    Role::Routed => FiringRole::Routed,
                    Role::Final => FiringRole::Final,
                    Role::Iteration { .. } | Role::Hook { .. } | Role::Tool { .. } => continue,
                };
                found.push(Firing { run, role: Some(role), failed: false });
            }
            RunChange::Skipped(step) if step == of => {
                found.push(Firing { run, role: None, failed: false });
            }
            RunChange::Failed { handled: false, .. } => {
                found.iter_mut().filter(|firing| firing.run == run).for_each(|firing| firing.failed = true);
            }
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Retried Done Failed Dropped Routed] =>
                {}
        }
    }
    found
}
