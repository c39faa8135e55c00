//! Mail: inputs that reach an execution through the inbox, from other executions and from other processes. A row is
//! consumed by the commit that decides it, so it takes effect exactly once.

use super::Lane;
use super::deciding::{Pending, PendingKind, StartRequester};
use super::live::Residency;
use super::reading::{List, LookupReason};
use super::rooms::Starter;
use crate::wake::{ChildReading, Defaults, InputsLookup, Lookup, PreparedStart};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::{
    Cancel, ChildResult, Create, ExecutionId, Failure, Fence, Input, Net, Outcome, Parent, Rejected, RunId,
    codes,
};
use windlass_store::{Letter, Mail, MailId, Origin, StoredDefinition, StoredMail, Which};

/// Rows read at a time.
pub const PAGE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    seen: Option<MailId>,
    reading: bool,
    /// Time of the next read on the steady clock.
    next_poll: u64,
}

impl Inbox {
    /// Notes that there is mail, so that it is read at the next wake-up.
    pub fn poke(&mut self) {
        self.next_poll = 0;
    }

    pub fn next_poll(&self) -> Option<u64> {
        (!self.reading).then_some(self.next_poll)
    }
}

/// A child whose definition is known and whose inputs are not.
#[derive(Debug)]
pub(super) struct StartingChild {
    mail: MailId,
    pub origin: Arc<Origin>,
    create: Create,
    net: Arc<Net>,
}

/// Reference to the definition of a child.
#[derive(Debug)]
pub(super) struct DefinitionRef {
    which: Which,
    /// The version; None: the newest.
    version: Option<u32>,
}

impl DefinitionRef {
    /// `Err` has the problem of the version.
    fn of(definition: &Value) -> Result<DefinitionRef, String> {
        let name = ["path", "catalog_id", "name"].iter().find_map(|key| definition.get(key)?.as_str());
        let name = name.or(definition.as_str()).unwrap_or_default();
        let version = match definition.get("version") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "latest" => None,
            Some(Value::String(text)) => Some(text.parse().ok()),
            Some(other) => Some(other.as_u64().and_then(|version| version.try_into().ok())),
        };
        match version {
            Some(None) => {
                let written = &definition["version"];
                Err(format!("{written} is not a version of `{name}`; use a whole number or `latest`"))
            }
            version => Ok(DefinitionRef { which: Which::of(name), version: version.flatten() }),
        }
    }

    fn missing(&self) -> Failure {
        let version = self.version.map(|version| format!(" of version {version}")).unwrap_or_default();
        let message = format!("there is no definition `{}`{version}: register it first", self.which);
        Failure::new(codes::RESOURCE_NOT_FOUND, message)
    }
}

impl<R> Lane<R> {
    pub(super) fn poll_inbox(&mut self) {
        if self.mail.reading || self.stopping || self.now.steady < self.mail.next_poll {
            return;
        }
        self.mail.reading = true;
        self.mail.next_poll = self.now.steady + self.config.inbox_poll_ms;
        self.read_list(Lookup::Inbox { after: self.mail.seen }, List::Inbox);
    }

    pub(super) fn inbox_found(&mut self, mail: Vec<StoredMail>) {
        self.mail.reading = false;
        if mail.len() >= PAGE {
            self.mail.poke();
        }
        for letter in mail {
            self.mail.seen = Some(letter.id);
            self.deliver(letter);
        }
    }

    pub(super) fn deliver(&mut self, mail: StoredMail) {
        match mail.letter {
            Letter::Input(input) => {
                let what = PendingKind::Input(Box::new(input));
                self.enqueue_input(mail.to, Pending { what, reply: None, mail: Some(mail.id), audit: None });
            }
            Letter::Start { ref tenant, .. } => {
                let tenant = tenant.clone();
                // Later mail to the child waits for its start.
                self.executions.put(mail.to, Residency::Loading(VecDeque::new()));
                self.begin_in_room(&tenant, Starter::Child(Box::new(mail)));
            }
            Letter::Retry(retry) => {
                let requester = StartRequester { reply: None, mail: Some(mail.id), audit: None };
                self.retry(mail.to, (*retry, None), requester);
            }
            Letter::Ended { child, run, fence } => {
                let why = LookupReason::ChildEnded { mail: mail.id, parent: mail.to, child, run, fence };
                self.read(Lookup::Result(Box::new(ChildReading::new(child))), why);
            }
        }
    }

    /// Looks up the definition of a child for which the tenant has room.
    pub(super) fn find_child(&mut self, mail: StoredMail) {
        let Letter::Start { definition, create, tenant, options } = mail.letter else { return };
        let wanted = match DefinitionRef::of(&definition) {
            Ok(wanted) => wanted,
            Err(what) => {
                self.missing(create.id);
                let failure = Failure::new(codes::VALIDATION_ERROR, what);
                return self.child_failed(mail.id, &create, failure);
            }
        };
        let lookup = Lookup::Named(tenant.clone(), wanted.which.clone(), wanted.version);
        let origin = Box::new(Origin {
            tenant,
            trigger: Cow::Borrowed(Origin::CHILD),
            parent: create.parent.as_ref().map(|parent| parent.execution),
            options: Arc::unwrap_or_clone(options),
            ..Origin::default()
        });
        self.read(lookup, LookupReason::StartChild { mail: mail.id, create, wanted, origin });
    }

    /// Continues with the definition of a child; its inputs come next.
    pub(super) fn child_found(
        &mut self,
        (mail, mut origin): (MailId, Box<Origin>),
        create: Create,
        wanted: &DefinitionRef,
        found: Option<(StoredDefinition, Arc<Net>)>,
    ) {
        let Some((definition, net)) = found else {
            self.missing(create.id);
            return self.child_failed(mail, &create, wanted.missing());
        };
        if net.policy().editors_only && origin.options.restricted {
            self.missing(create.id);
            return self.child_failed(mail, &create, for_editors(Some(&definition)));
        }
        let lookup = InputsLookup {
            execution: create.id,
            tenant: origin.tenant.clone(),
            given: create.inputs.clone(),
            defaults: Defaults::Definition(definition.id, net.clone()),
        };
        (origin.definition, origin.workflow) = (Some(definition.id), Some(definition.workflow));
        let child = StartingChild { mail, origin: Arc::from(origin), create, net };
        self.read(Lookup::Inputs(Box::new(lookup)), LookupReason::ChildInputs(Box::new(child)));
    }

    pub(super) fn start_child(&mut self, child: StartingChild, prepared: Result<PreparedStart, String>) {
        let StartingChild { mail, origin, create, net } = child;
        let PreparedStart { inputs, net: other } = match prepared {
            Ok(prepared) => prepared,
            Err(why) => {
                self.missing(create.id);
                return self.child_failed(mail, &create, Failure::new(codes::VALIDATION_ERROR, why));
            }
        };
        other.iter().for_each(|net| self.keep_other_net(net));
        let net = other.unwrap_or(net);
        let create = Create { inputs: Arc::new(inputs), ..create };
        let requester = StartRequester { reply: None, mail: Some(mail), audit: None };
        self.create(&net, create, origin, requester);
    }

    /// Reports a child that did not begin as failed to its parent.
    pub(super) fn child_failed(&mut self, mail: MailId, create: &Create, failure: Failure) {
        let Some(Parent { execution, run, fence }) = create.parent.clone() else {
            return self.settle_mail(Some(mail), Some(failure.message));
        };
        let result = ChildResult { outcome: Outcome::Failed, output: Arc::default(), failure: Some(failure) };
        let input = Input::ChildEnded { run, fence, child: create.id, result };
        self.enqueue_input(
            execution,
            Pending { what: PendingKind::Input(Box::new(input)), reply: None, mail: Some(mail), audit: None },
        );
    }

    pub(super) fn child_ended(
        &mut self,
        mail: MailId,
        parent: ExecutionId,
        (child, run, fence): (ExecutionId, RunId, Fence),
        result: Option<ChildResult>,
    ) {
        let Some(result) = result else {
            return self.settle_mail(Some(mail), Some(format!("execution {child} has not ended")));
        };
        let what = PendingKind::Input(Box::new(Input::ChildEnded { run, fence, child, result }));
        self.enqueue_input(parent, Pending { what, reply: None, mail: Some(mail), audit: None });
    }

    pub(super) fn mail_refused(&mut self, pending: &Pending<R>, rejected: &Rejected) {
        let Some(mail) = pending.mail else { return };
        if let PendingKind::Create(input, _) = &pending.what
            && let Input::Create(create) = &**input
        {
            let failure = Failure::new(codes::VALIDATION_ERROR, rejected.to_string());
            return self.child_failed(mail, create, failure);
        }
        if let PendingKind::Fork(forking) = &pending.what
            && let create @ Create { parent: Some(_), .. } = forking.as_create()
        {
            let failure = Failure::new(codes::VALIDATION_ERROR, rejected.to_string());
            return self.child_failed(mail, &create, failure);
        }
        self.settle_mail(Some(mail), Some(rejected.to_string()));
    }

    pub(super) fn post(&mut self, from: ExecutionId, to: ExecutionId, letter: Letter) {
        let at = self.now.wall;
        if let Some(building) = self.open.commit(from) {
            building.mail.push(Mail { to, letter, answered: false, at });
        }
    }

    pub(super) fn cancel_child(&mut self, from: ExecutionId, child: ExecutionId) {
        let cancel =
            Cancel { by: format!("exec_{from}"), reason: "its parent stopped".into(), ..Cancel::default() };
        self.post(from, child, Letter::Input(Input::Cancel(cancel)));
    }
}

pub(super) fn for_editors(definition: Option<&StoredDefinition>) -> Failure {
    let name = definition.map_or("the definition", |definition| &definition.name);
    let message = format!(
        "`{name}` may be started only by callers who may edit definitions: its templates are program text"
    );
    Failure::new(codes::PERMISSION_DENIED, message)
}
