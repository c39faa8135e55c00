//! Lookups in the store, and the actions on their results.

use super::Lane;
use super::deciding::{Pending, Starting, What};
use super::dispatch::{parts, unit};
use super::live::{Live, Place};
use super::mail::{DefinitionRef, StartingChild};
use super::retry::Retrying;
use crate::ids::IdMap;
use crate::wake::{Answer, Found, Lookup, ReadId, Refusal, Start};
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Fence, Need, Net, RunId, any_of};
use windlass_store::{MailId, Origin, StoreError, Stored, StoredDefinition, Tenant};

/// Reason for a lookup.
#[derive(Debug)]
pub(super) enum Why<R> {
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
    open: IdMap<ReadId, Why<R>>,
}

impl<R> Default for Reads<R> {
    fn default() -> Self {
        Reads { next: 0, open: IdMap::default() }
    }
}

impl<R> Reads<R> {
    pub fn expect(&mut self, why: Why<R>) -> ReadId {
        let id = ReadId(self.next);
        self.next += 1;
        self.open.insert(id, why);
        id
    }

    /// Returns the number of starts of a tenant that have room and begin when their definition is found.
    pub fn beginnings_of(&self, tenant: &Tenant) -> usize {
        let begins = |why: &&Why<R>| match why {
            Why::Start(start, _) => start.origin.tenant == *tenant,
            Why::Inputs(starting, _) => starting.start.origin.tenant == *tenant,
            Why::StartChild { origin, .. } => origin.tenant == *tenant,
            Why::ChildInputs(child) => child.origin.tenant == *tenant,
            any_of![Why: Load Net Values ChildEnded Retry ToolEnd Report Room OffersOf InboxOf List] => false,
        };
        self.open.values().filter(begins).count()
    }

    /// Returns whether a caller waits for a lookup that is in progress.
    pub fn are_awaited(&self) -> bool {
        self.open.values().any(|why| match why {
            Why::Load(_) | Why::Net(..) | Why::Values(..) | Why::Start(..) | Why::Inputs(..) => true,
            Why::ToolEnd(..) | Why::Report(..) | Why::Room(..) => true,
            Why::Retry(retrying) => retrying.is_awaited(),
            Why::StartChild { .. } | Why::ChildInputs(_) | Why::ChildEnded { .. } => false,
            Why::List(..) | Why::OffersOf | Why::InboxOf => false,
        })
    }
}

impl<R> Lane<R> {
    pub(super) fn read_list(&mut self, lookup: Lookup, list: List) {
        self.read(lookup.clone(), Why::List(lookup, list));
    }

    pub(super) fn found(&mut self, id: ReadId, found: Result<Found, StoreError>) {
        let Some(why) = self.reads.open.remove(&id) else { return };
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.unreadable(why, error),
        };
        match (why, found) {
            (Why::Load(id), Found::Execution(stored)) => self.loaded(id, stored),
            (Why::Net(id, stored), Found::Net(net)) => self.net_found(id, *stored, net),
            (Why::Values(id, needs), Found::Values(values)) => self.values_found(id, &needs, values),
            (Why::Start(start, reply), Found::Definition(found)) => {
                self.start_found(*start, found.map(|found| *found), reply)
            }
            (Why::StartChild { mail, create, wanted, origin }, Found::Definition(found)) => {
                self.child_found((mail, origin), *create, &wanted, found.map(|found| *found));
            }
            (Why::Inputs(starting, reply), Found::Inputs(inputs)) => {
                self.inputs_found(*starting, inputs, reply)
            }
            (Why::ChildInputs(child), Found::Inputs(inputs)) => self.start_child(*child, inputs),
            (Why::ChildEnded { mail, parent, child, run, fence }, Found::Result(result)) => {
                self.child_ended(mail, parent, (child, run, fence), result);
            }
            (Why::Retry(retrying), Found::Past(past)) => self.past_found(*retrying, past),
            (Why::ToolEnd(agent, tool, reply), Found::End(end)) => {
                self.tool_end_found(agent, tool, end, reply);
            }
            (why @ Why::ChildEnded { .. }, Found::ResultLater(reading)) => {
                self.read(Lookup::Result(reading), why)
            }
            (Why::ToolEnd(agent, tool, reply), Found::EndLater(from)) => {
                let (execution, ..) = parts(agent);
                self.read(Lookup::End(execution, tool, from), Why::ToolEnd(agent, tool, reply));
            }
            (Why::List(_, List::Due), Found::Due(due)) => self.due_found(&due),
            (Why::List(_, List::Offers), Found::Offers(offers)) => self.offers_found(&offers),
            (Why::List(_, List::Stops), Found::Stops(stops)) => self.stops_found(&stops),
            (Why::List(_, List::Unfinished), Found::Unfinished(ids)) => self.unfinished_found(ids),
            (Why::List(_, List::Inbox), Found::Inbox(mail)) => self.inbox_found(mail),
            (Why::Room(tenant, unwritten), Found::Open(open)) => self.room_found(&tenant, unwritten, open),
            (Why::Report(report, reply), Found::Offers(offers)) => self.offer_found(*report, &offers, reply),
            (Why::OffersOf, Found::Offers(offers)) => self.offers_of_found(&offers),
            (Why::InboxOf, Found::Inbox(mail)) => mail.into_iter().for_each(|mail| self.deliver(mail)),
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
                self.read(Lookup::Net(digest), Why::Net(id, stored));
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
            Some(Place::Loading(waiting)) => waiting,
            Some(live) => return self.executions.put(id, live),
            None => return,
        };
        let mut live = Live::new(stored.state, net, stored.origin);
        live.waiting = waiting;
        self.executions.put(id, Place::Live(Box::new(live)));
        self.resume(id);
    }

    pub(super) fn missing(&mut self, id: ExecutionId) {
        let Some(Place::Loading(waiting)) = self.executions.take(id) else { return };
        self.refuse_all(id, waiting);
    }

    /// Handles an execution that does not exist: all waiting inputs get that answer.
    pub(super) fn drop_unborn(&mut self, id: ExecutionId) {
        if let Some(Place::Live(live)) = self.executions.take(id) {
            self.refuse_all(id, live.waiting);
        }
    }

    fn refuse_all(&mut self, id: ExecutionId, waiting: VecDeque<Pending<R>>) {
        for pending in waiting {
            match &pending.what {
                What::Dispatch { tenant, .. } => self.queue.left(tenant),
                What::Begin { tenant } | What::Assign { tenant } => self.drop_queued_start(id, tenant),
                What::Again { run, fence } => self.not_delivered(unit(id, *run, *fence)),
                What::Claimed { session, .. } => self.unreserve(*session),
                What::Taken { session, .. } => self.sessions.unreserve_runner(*session),
                any_of![What: Input Report Agent Create Fork Await StartDue Inside WholeReady WholeEnded Fetch Repeat
                    Sort Kept] => {}
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
            return self.answer(reply, Answer::Refused(Refusal::NoDefinition));
        };
        self.executions.keep_definition(definition.id, &net, definition.workflow);
        self.start_of(&net, definition.workflow, start, reply);
    }
}
