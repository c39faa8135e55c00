//! Retries of ended executions as new ones (R12). A retry is planned by the thread that reads the journal, and begins
//! here.

use super::Lane;
use super::deciding::{Pending, PendingKind, StartRequester};
use super::live::Residency;
use super::mail::for_editors;
use super::reading::LookupReason;
use super::rooms::Starter;
use crate::retries::Past;
use crate::wake::{EngineAnswer, Lookup, Refusal};
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::{
    Create, Decision, ExecutionId, Failure, Given, Millis, Need, Net, NewExecution, Record, Rejected, Values,
    codes,
};
use windlass_retry::{RetryPlan, carry_over};
use windlass_store::{Creation, Origin, Retry};

/// A retry whose ended execution is being read.
#[derive(Debug)]
pub(super) struct Retrying<R> {
    id: ExecutionId,
    retry: Retry,
    /// Whether it runs a Net that is not stored with its definition.
    has_other_net: bool,
    requester: StartRequester<R>,
}

impl<R> Retrying<R> {
    pub fn is_awaited(&self) -> bool {
        self.requester.reply.is_some()
    }
}

/// A new execution that takes over from an ended one.
#[derive(Debug)]
pub(super) struct Forking {
    pub creation: Creation,
    /// The ended execution.
    pub of: ExecutionId,
    /// `None` once the execution has begun.
    plan: Option<RetryPlan>,
    net: Arc<Net>,
    new: NewExecution,
}

impl Forking {
    fn decide(&self, (now, random): (Millis, u64), values: &Values) -> Result<Decision, Rejected> {
        let Some(plan) = &self.plan else { return Err(Rejected::Exists) };
        let mut values = values.clone();
        let mut asked = Vec::new();
        loop {
            let given = Given { now, random, values: &values };
            match carry_over(plan, &self.net, &self.new, &given) {
                // All values that a decision reads are in the records that were taken over, or stored apart from them.
                Err(Rejected::Needs(needs)) if needs != asked => {
                    values.load(plan.records(), &needs);
                    asked = needs;
                }
                decided => return decided,
            }
        }
    }

    /// Returns the journal before the execution's own records.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.plan.take().map(RetryPlan::into_records).unwrap_or_default()
    }

    /// Returns the creation of the same execution, for the report of its failure to a parent.
    pub fn as_create(&self) -> Create {
        Create { parent: self.new.parent.clone(), ..Create::new(self.new.id, serde_json::Value::Null) }
    }
}

impl<R> Lane<R> {
    pub(super) fn retry(
        &mut self,
        id: ExecutionId,
        (retry, net): (Retry, Option<Arc<Net>>),
        requester: StartRequester<R>,
    ) {
        if self.quarantined.holds(retry.of) {
            let refusal = self.quarantine_refusal(retry.of);
            return self.refuse_retry(id, &retry, requester, refusal);
        }
        // Later mail to the new execution waits for its beginning.
        self.executions.put(id, Residency::Loading(VecDeque::new()));
        let retrying = Retrying { id, retry: retry.clone(), has_other_net: net.is_some(), requester };
        self.read(Lookup::Past(Box::new(retry), net), LookupReason::Retry(Box::new(retrying)));
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

    /// Begins a retry for which the tenant has room.
    pub(super) fn start_retry(&mut self, retrying: Retrying<R>, past: Past) {
        let Retrying { id, retry, has_other_net, requester } = retrying;
        self.config.activities.lane.begin_execution(id);
        // The server checks this for retries that a caller requests.
        if let (Some(mail), Some(_)) = (requester.mail, &retry.parent)
            && past.net.policy().editors_only
            && retry.restricted
        {
            self.missing(id);
            return self.child_failed(mail, &waiting_for(id, &retry), for_editors(None));
        }
        match begin_again(id, &retry, past, self.now.wall) {
            Ok(forking) => {
                let (net, origin) = (forking.net.clone(), forking.creation.origin.clone());
                if has_other_net {
                    self.keep_other_net(&net);
                }
                self.insert_new(id, &net, origin, requester.pending(PendingKind::Fork(Box::new(forking))));
            }
            Err(refusal) => self.refuse_retry(id, &retry, requester, refusal),
        }
    }

    pub(super) fn retry_refused(&mut self, retrying: Retrying<R>, refusal: Refusal) {
        self.refuse_retry(retrying.id, &retrying.retry, retrying.requester, refusal);
    }

    fn refuse_retry(
        &mut self,
        id: ExecutionId,
        retry: &Retry,
        requester: StartRequester<R>,
        refusal: Refusal,
    ) {
        self.missing(id);
        if let (Some(mail), Some(_)) = (requester.mail, &retry.parent) {
            let message = format!(
                "the failed sub-execution exec_{} cannot be continued: {refusal}; retry from this step to start it anew",
                retry.of
            );
            return self.child_failed(
                mail,
                &waiting_for(id, retry),
                Failure::new(codes::RESOURCE_NOT_FOUND, message),
            );
        }
        self.settle_mail(requester.mail, Some(refusal.to_string()));
        if let Some(reply) = requester.reply {
            self.answer(reply, EngineAnswer::Refused(refusal));
        }
    }

    pub(super) fn fork(&mut self, id: ExecutionId, pending: Pending<R>) {
        let (now, random) = (self.now.wall, self.random_bits());
        let PendingKind::Fork(forking) = &pending.what else { return };
        let Some(live) = self.executions.get(id) else { return };
        match forking.decide((now, random), &live.values) {
            Ok(decision) => self.decided(id, pending, decision),
            Err(Rejected::Needs(needs)) if needs.iter().all(|need| matches!(need, Need::Artifact(_))) => {
                self.need(id, pending, needs);
            }
            Err(rejected) => self.refused(id, pending, rejected),
        }
    }
}

/// Returns the creation of a child that does not begin, for the report to its parent.
fn waiting_for(id: ExecutionId, retry: &Retry) -> Create {
    Create { parent: retry.parent.clone(), ..Create::new(id, serde_json::Value::Null) }
}

/// Returns the beginning of the new execution, with the origin of the ended one.
fn begin_again(id: ExecutionId, retry: &Retry, mut past: Past, now: Millis) -> Result<Forking, Refusal> {
    let plan = past.take_plan()?;
    let Past { stored, net, definition, .. } = past;
    let inputs = retry.inputs.clone().unwrap_or_else(|| stored.state.head.inputs.clone());
    let mut origin = (*stored.origin).clone();
    origin.options = origin.options.started(retry.by.clone(), &stored.origin.options);
    origin.options.restricted |= retry.restricted;
    // The new execution has these inputs, or some of them.
    origin.options.inputs_of_worker = stored.origin.has_inputs_of_worker();
    if let Some(definition) = definition {
        (origin.definition, origin.workflow) = (Some(definition.id), Some(definition.workflow));
    }
    let parent = retry.parent.as_ref().map_or(retry.of, |parent| parent.execution);
    let (parent, trigger) = (Some(parent), retry.trigger.clone().into());
    let origin = Arc::new(Origin { parent, retry_of: Some(retry.of), trigger, key: None, ..origin });
    let creation = Creation { origin, net: net.digest(), inputs, at: now };
    let new = NewExecution { id, inputs: retry.inputs.clone(), parent: retry.parent.clone() };
    Ok(Forking { creation, of: retry.of, plan: Some(plan), net, new })
}
