//! Lookups in the store, and the actions on their results.

use super::Lane;
use super::deciding::{Pending, PendingKind, Starting};
use super::dispatch::{parts, unit};
use super::live::{Live, Residency};
use super::mail::{DefinitionRef, StartingChild};
use super::retry::Retrying;
use crate::ids::IdMap;
use crate::wake::{EngineAnswer, Found, Lookup, ReadId, Refusal, Start};
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Fence, Need, Net, RunId, any_of};
use windlass_store::{MailId, Origin, StoreError, Stored, StoredDefinition, Tenant};

/// Reason for a lookup.
#[derive(Debug)]
pub(super) enum LookupReason<R> {
    Load(ExecutionId),
    Net(ExecutionId, Box<Stored>),
    Values(ExecutionId, Vec<Need>),
    Start(Box<Start>, R),
    StartChild {
        mail: MailId,
        create: Box<Create>,
        wanted: DefinitionRef,
        origin: Box<Origin>,
    },
    /// Whole inputs of a start.
    Inputs(Box<Starting>, R),
    /// Whole inputs of a child.
    ChildInputs(Box<StartingChild>),
    ChildEnded {
        mail: MailId,
        parent: ExecutionId,
        child: ExecutionId,
        run: RunId,
        fence: Fence,
    },
    Retry(Box<Retrying<R>>),
    ToolEnd(windlass_protocol::Unit, RunId, R),
    /// Report on work that this process did not give out.
    Report(Box<windlass_protocol::Report>, R),
    /// Number of open executions of a tenant, and of those that began and may not be on disk yet.
    Room(Tenant, usize),
    /// Rows of a released execution.
    OffersOf,
    InboxOf,
    /// The stored lookup is repeated when an execution of the list cannot be read.
    List(Lookup, List),
}

/// A list of work, of all executions.
#[derive(Debug, Clone, Copy)]
pub(super) enum List {
    Due,
    Offers,
    Stops,
    Unfinished,
    Inbox,
}

#[derive(Debug)]
pub(super) struct Reads<R> {
    next: u64,
    open: IdMap<ReadId, LookupReason<R>>,
}

impl<R> Default for Reads<R> {
    fn default() -> Self {
        Reads { next: 0, open: IdMap::default() }
    }
}

impl<R> Reads<R> {
    pub fn expect(&mut self, why: LookupReason<R>) -> ReadId {
        let id = ReadId(self.next);
        self.next += 1;
        self.open.insert(id, why);
        id
    }

    /// Returns the number of starts of a tenant that have room and begin when their definition is found.
    pub fn beginnings_of(&self, tenant: &Tenant) -> usize {
        let begins = |why: &&LookupReason<R>| match why {
            LookupReason::Start(start, _) => start.origin.tenant == *tenant,
            LookupReason::Inputs(starting, _) => starting.start.origin.tenant == *tenant,
            LookupReason::StartChild { origin, .. } => origin.tenant == *tenant,
            LookupReason::ChildInputs(child) => child.origin.tenant == *tenant,
            any_of![LookupReason: Load Net Values ChildEnded Retry ToolEnd Report Room OffersOf InboxOf List] => {
                false
            }
        };
        self.open.values().filter(begins).count()
    }

    /// Returns whether a caller waits for a lookup that is in progress.
    pub fn are_awaited(&self) -> bool {
        self.open.values().any(|why| match why {
            LookupReason::Load(_)
            | LookupReason::Net(..)
            | LookupReason::Values(..)
            | LookupReason::Start(..)
            | LookupReason::Inputs(..) => true,
            LookupReason::ToolEnd(..) | LookupReason::Report(..) | LookupReason::Room(..) => true,
            LookupReason::Retry(retrying) => retrying.is_awaited(),
            LookupReason::StartChild { .. }
            | LookupReason::ChildInputs(_)
            | LookupReason::ChildEnded { .. } => false,
            LookupReason::List(..) | LookupReason::OffersOf | LookupReason::InboxOf => false,
        })
    }
}

impl<R> Lane<R> {
    pub(super) fn read_list(&mut self, lookup: Lookup, list: List) {
        self.read(lookup.clone(), LookupReason::List(lookup, list));
    }

    pub(super) fn found(&mut self, id: ReadId, found: Result<Found, StoreError>) {
        let Some(why) = self.reads.open.remove(&id) else { return };
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.unreadable(why, error),
        };
        match (why, found) {
            (LookupReason::Load(id), Found::Execution(stored)) => self.loaded(id, stored),
            (LookupReason::Net(id, stored), Found::Net(net)) => self.net_found(id, *stored, net),
            (LookupReason::Values(id, needs), Found::Values(values)) => self.values_found(id, &needs, values),
            (LookupReason::Start(start, reply), Found::Definition(found)) => {
                self.start_found(*start, found.map(|found| *found), reply)
            }
            (LookupReason::StartChild { mail, create, wanted, origin }, Found::Definition(found)) => {
                self.child_found((mail, origin), *create, &wanted, found.map(|found| *found));
            }
            (LookupReason::Inputs(starting, reply), Found::Inputs(inputs)) => {
                self.inputs_found(*starting, inputs, reply)
            }
            (LookupReason::ChildInputs(child), Found::Inputs(inputs)) => self.start_child(*child, inputs),
            (LookupReason::ChildEnded { mail, parent, child, run, fence }, Found::Result(result)) => {
                self.child_ended(mail, parent, (child, run, fence), result);
            }
            (LookupReason::Retry(retrying), Found::Past(past)) => self.past_found(*retrying, past),
            (LookupReason::ToolEnd(agent, tool, reply), Found::End(end)) => {
                self.tool_end_found(agent, tool, end, reply);
            }
            (why @ LookupReason::ChildEnded { .. }, Found::ResultLater(reading)) => {
                self.read(Lookup::Result(reading), why)
            }
            (LookupReason::ToolEnd(agent, tool, reply), Found::EndLater(from)) => {
                let (execution, ..) = parts(agent);
                self.read(Lookup::End(execution, tool, from), LookupReason::ToolEnd(agent, tool, reply));
            }
            (LookupReason::List(_, List::Due), Found::Due(due)) => self.due_found(&due),
            (LookupReason::List(_, List::Offers), Found::Offers(offers)) => self.offers_found(&offers),
            (LookupReason::List(_, List::Stops), Found::Stops(stops)) => self.stops_found(&stops),
            (LookupReason::List(_, List::Unfinished), Found::Unfinished(ids)) => self.unfinished_found(ids),
            (LookupReason::List(_, List::Inbox), Found::Inbox(mail)) => self.inbox_found(mail),
            (LookupReason::Room(tenant, unwritten), Found::Open(open)) => {
                self.note_room(&tenant, unwritten, open)
            }
            (LookupReason::Report(report, reply), Found::Offers(offers)) => {
                self.offer_found(*report, &offers, reply)
            }
            (LookupReason::OffersOf, Found::Offers(offers)) => self.offers_of_found(&offers),
            (LookupReason::InboxOf, Found::Inbox(mail)) => {
                mail.into_iter().for_each(|mail| self.deliver(mail))
            }
            // Each lookup has one kind of answer.
            (_, found) => debug_assert!(false, "an answer to another question: {found:?}"),
        }
    }

    fn loaded(&mut self, id: ExecutionId, stored: Option<Box<Stored>>) {
        let Some(stored) = stored else { return self.missing(id) };
        match self.executions.net(stored.state.head.net) {
            Some(net) => self.put_live(id, *stored, net),
            None => {
                let digest = stored.state.head.net;
                self.read(Lookup::Net(digest), LookupReason::Net(id, stored));
            }
        }
    }

    fn net_found(&mut self, id: ExecutionId, stored: Stored, net: Option<Arc<Net>>) {
        let Some(net) = net else {
            return self.quarantine(id, "its net is not in the store".to_owned());
        };
        self.executions.keep_net(&net);
        self.put_live(id, stored, net);
    }

    fn put_live(&mut self, id: ExecutionId, stored: Stored, net: Arc<Net>) {
        let waiting = match self.executions.take(id) {
            Some(Residency::Loading(waiting)) => waiting,
            Some(live) => return self.executions.put(id, live),
            None => return,
        };
        let mut live = Live::new(stored.state, net, stored.origin);
        live.waiting = waiting;
        self.executions.put(id, Residency::Live(Box::new(live)));
        self.resume(id);
    }

    pub(super) fn missing(&mut self, id: ExecutionId) {
        let Some(Residency::Loading(waiting)) = self.executions.take(id) else { return };
        self.refuse_all(id, waiting);
    }

    /// Handles an execution that does not exist: all waiting inputs get that answer.
    pub(super) fn drop_missing_execution(&mut self, id: ExecutionId) {
        if let Some(Residency::Live(live)) = self.executions.take(id) {
            self.refuse_all(id, live.waiting);
        }
    }

    fn refuse_all(&mut self, id: ExecutionId, waiting: VecDeque<Pending<R>>) {
        for pending in waiting {
            match &pending.what {
                PendingKind::Dispatch { tenant, .. } => self.queue.left(tenant),
                PendingKind::Begin { tenant } | PendingKind::Assign { tenant } => {
                    self.drop_queued_start(id, tenant)
                }
                PendingKind::Again { run, fence } => self.return_undelivered(unit(id, *run, *fence)),
                PendingKind::Claimed { session, .. } => self.unreserve(*session),
                PendingKind::Taken { session, .. } => self.sessions.unreserve_runner(*session),
                any_of![PendingKind: Input Report Agent Create Fork Await StartDue Inside WholeReady WholeEnded Fetch Asked Relayed
                    Repeat Sort Kept] => {}
            }
            let refusal = Refusal::NoExecution(id);
            self.settle_mail(pending.mail, Some(refusal.to_string()));
            if let Some(reply) = pending.reply {
                self.answer(reply, pending.what.refuse(refusal));
            }
        }
    }

    fn start_found(&mut self, start: Start, found: Option<(StoredDefinition, Arc<Net>)>, reply: R) {
        let Some((definition, net)) = found else {
            return self.answer(reply, EngineAnswer::Refused(Refusal::NoDefinition));
        };
        self.executions.keep_definition(definition.id, &net, definition.workflow);
        self.start_of(&net, definition.workflow, start, reply);
    }
}
