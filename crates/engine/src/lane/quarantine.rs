//! Quarantined executions. Requests for them are refused; their mail and offers stay in their rows, and are looked up
//! when they are released.

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::parts;
use super::live::Residency;
use super::reading::LookupReason;
use crate::ids::IdMap;
use crate::wake::{Effect, EngineAnswer, Lookup, Refusal};
use windlass_kernel::{ChildResult, ExecutionId, Failure, Input, Outcome, any_of, codes};
use windlass_protocol as protocol;
use windlass_store::{Audit, Entry, Quarantine, StoreError, Suspect, Write};

#[derive(Debug, Default)]
pub(super) struct Quarantined {
    executions: IdMap<ExecutionId, Quarantine>,
}

impl Quarantined {
    pub fn of(executions: impl IntoIterator<Item = (ExecutionId, Quarantine)>) -> Quarantined {
        Quarantined { executions: executions.into_iter().collect() }
    }

    pub fn holds(&self, id: ExecutionId) -> bool {
        !self.executions.is_empty() && self.executions.contains_key(&id)
    }

    pub fn len(&self) -> usize {
        self.executions.len()
    }
}

impl<R> Lane<R> {
    /// Stops all work on this execution. Earlier decisions are still written.
    pub(super) fn quarantine(&mut self, id: ExecutionId, reason: String) {
        self.quarantine_and(id, reason, WriteFollowUp::Nothing);
    }

    fn quarantine_and(&mut self, id: ExecutionId, reason: String, then: WriteFollowUp<R>) {
        let since = self.now.wall;
        let place = self.executions.take(id);
        let version = match &place {
            Some(Residency::Live(live)) => live.state.head.version,
            Some(Residency::Loading(_)) | None => 0,
        };
        let suspect = Suspect {
            execution: id,
            version,
            deaths: 0,
            quarantined_at: Some(since),
            reason: reason.clone(),
        };
        self.open.write(Write::Entry(Box::new(Entry::Suspect(Box::new(suspect)))), then);
        let quarantine = Quarantine { since, reason: reason.clone(), deaths: 0 };
        self.quarantined.executions.insert(id, quarantine);
        self.effects.push(Effect::Quarantined(id, reason));
        match place {
            Some(Residency::Loading(waiting)) => {
                waiting.into_iter().for_each(|one| self.answer_quarantined(id, one))
            }
            Some(Residency::Live(live)) => {
                live.waiting.into_iter().for_each(|one| self.answer_quarantined(id, one));
                let refusal = self.quarantine_refusal(id);
                for (_, reply) in live.waiters {
                    self.answer(reply, EngineAnswer::Refused(refusal.clone()));
                }
            }
            None => {}
        }
    }

    /// Answers inputs for a quarantined execution. Mail stays in the inbox, an offer in its row.
    pub(super) fn answer_quarantined(&mut self, id: ExecutionId, pending: Pending<R>) {
        match &pending.what {
            PendingKind::Dispatch { tenant, .. } => self.queue.left(tenant),
            PendingKind::Begin { tenant } | PendingKind::Assign { tenant } => {
                self.drop_queued_start(id, tenant)
            }
            PendingKind::Claimed { session, .. } => self.unreserve(*session),
            PendingKind::Taken { session, .. } => self.sessions.unreserve_runner(*session),
            any_of![PendingKind: Input Report Agent Create Fork Await StartDue Inside WholeReady WholeEnded Again Fetch Asked Relayed
                Repeat Sort Kept] => {}
        }
        let Some(reply) = pending.reply else { return };
        self.answer(reply, pending.what.refuse(self.quarantine_refusal(id)));
    }

    pub(super) fn quarantine_refusal(&self, id: ExecutionId) -> Refusal {
        let reason = self.quarantined.executions.get(&id).map(|quarantine| quarantine.reason.clone());
        Refusal::Quarantined { execution: id, reason: reason.unwrap_or_default() }
    }

    /// Releases an execution. Its waiting inputs are looked up when the release is on disk.
    pub(super) fn release(&mut self, id: ExecutionId, audit: Audit, reply: R) {
        if !self.quarantined.holds(id) {
            return self.answer(reply, EngineAnswer::Refused(Refusal::NotQuarantined(id)));
        }
        let entry = Entry::Released { execution: id }.audited(audit);
        self.open.write(Write::Entry(Box::new(entry)), WriteFollowUp::Released(id, reply));
    }

    pub(super) fn released(&mut self, id: ExecutionId, reply: R) {
        self.quarantined.executions.remove(&id);
        self.read(Lookup::OffersOf(id), LookupReason::OffersOf);
        self.read(Lookup::InboxOf(id), LookupReason::InboxOf);
        self.timers.read_again();
        self.enqueue_input(id, Pending::input(Input::Continue));
        self.answer(reply, EngineAnswer::Accepted);
    }

    /// Handles rows that could not be read. If they belong to one execution, only that one is quarantined; if the whole
    /// store may be damaged, the lane ends.
    pub(super) fn unreadable(&mut self, why: LookupReason<R>, error: StoreError) {
        let what = error.to_string();
        match (why, error) {
            (LookupReason::Load(id) | LookupReason::Net(id, _) | LookupReason::Values(id, _), error)
                if is_of_rows(&error) =>
            {
                self.quarantine(id, what);
            }
            (LookupReason::Start(_, reply) | LookupReason::Inputs(_, reply), error) if is_of_rows(&error) => {
                self.answer(reply, EngineAnswer::Refused(Refusal::Unreadable(what)));
            }
            (LookupReason::StartChild { mail, create, .. }, error) if is_of_rows(&error) => {
                self.missing(create.id);
                self.child_failed(mail, &create, Failure::new(codes::STORE_DAMAGED, what));
            }
            (LookupReason::ChildInputs(child), error) if is_of_rows(&error) => {
                self.start_child(*child, Err(what))
            }
            (LookupReason::ChildEnded { mail, parent, child, run, fence }, error) if is_of_rows(&error) => {
                let failure = Some(Failure::new(codes::STORE_DAMAGED, what));
                let output = std::sync::Arc::default();
                let result = ChildResult { outcome: Outcome::Failed, output, failure };
                self.child_ended(mail, parent, (child, run, fence), Some(result));
            }
            (LookupReason::Retry(retrying), error) if is_of_rows(&error) => {
                self.retry_refused(*retrying, Refusal::Unreadable(what));
            }
            (LookupReason::ToolEnd(agent, _, reply), error) if is_of_rows(&error) => {
                self.answer(reply, EngineAnswer::agent(protocol::AgentAnswer::Stale));
                self.quarantine(parts(agent).0, what);
            }
            (LookupReason::Report(report, reply), error) if is_of_rows(&error) => {
                self.answer(reply, EngineAnswer::verdict(protocol::Verdict::Stale));
                self.quarantine(parts(report.unit).0, what);
            }
            // A list continues without the execution as soon as its row has the quarantine.
            (LookupReason::List(lookup, why), StoreError::Unreadable { execution, .. })
                if !self.quarantined.holds(execution) =>
            {
                self.quarantine_and(execution, what, WriteFollowUp::LookAgain(lookup, why));
            }
            (_, error) => self.fatal(error),
        }
    }
}

fn is_of_rows(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged(_) | StoreError::Undecodable(_) | StoreError::Unreadable { .. } => true,
        StoreError::Full(_) | StoreError::Io(_) | StoreError::Corrupt(_) | StoreError::Newer { .. } => false,
    }
}
