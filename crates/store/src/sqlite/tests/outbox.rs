//! Events on their way out.

use super::Folder;
use crate::check::check;
use crate::commit::{Applied, Write};
use crate::conformance::world::{World, chain};
use crate::entry::Entry;
use crate::origin::{Options, Tenant, Webhook};
use crate::outbox::{DeliveryQuery, DeliveryState, NewDeliveries, NewDelivery, Outbox as _, Try};
use crate::sqlite::Sqlite;
use crate::store::Store as _;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Millis};

const ONE: ExecutionId = ExecutionId(1);
const OTHER: ExecutionId = ExecutionId(2);

fn begin(store: &mut Sqlite, id: ExecutionId, webhook: bool) {
    let mut commit = World::new(&chain(1)).begin(Create::new(id, json!({})));
    let url = "https://example.org/".to_owned();
    let webhook = webhook.then(|| Webhook { url, events: vec!["execution.completed".to_owned()] });
    if let Some(creation) = &mut commit.creation {
        creation.options = Arc::new(Options { webhook, ..Options::default() });
    }
    let applied = store.write(&[Write::Commit(Box::new(commit))]).unwrap();
    assert!(matches!(applied[0], Applied::Committed(_)));
}

fn keep(store: &mut Sqlite, entry: Entry) -> Applied {
    store.write(&[Write::Entry(Box::new(entry))]).unwrap()[0]
}

fn add(store: &mut Sqlite, numbers: std::ops::RangeInclusive<u64>) -> Applied {
    let made = numbers.map(|number| NewDelivery {
        number,
        message: number * 10,
        event: "node.started".to_owned(),
        body: format!("{{\"n\":{number}}}"),
    });
    let new = NewDeliveries { execution: ONE, seen: 99, made: made.collect(), at: Millis(5) };
    keep(store, Entry::Deliveries(Box::new(new)))
}

fn tried(store: &mut Sqlite, number: u64, state: DeliveryState) -> Applied {
    let (due, error) = (Some(Millis(77)), Some("no".to_owned()));
    let tried =
        Try { execution: ONE, number, state, attempts: 1, due, answer: Some(500), error, at: Millis(6) };
    keep(store, Entry::Tried(Box::new(tried)))
}

fn pending(store: &Sqlite) -> Vec<u64> {
    let found = store.reader().unwrap().pending(ONE, 9).unwrap();
    found.iter().map(|found| found.delivery.number).collect()
}

fn query(tenant: &str) -> DeliveryQuery {
    let tenant = Tenant::new(tenant);
    DeliveryQuery { tenant, execution: None, number: None, state: None, event: None, before: None, limit: 9 }
}

#[test]
fn an_execution_with_a_webhook_has_something_to_tell_from_its_first_commit_on() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    begin(&mut store, OTHER, false);
    let tellers = store.reader().unwrap().tellers(0, 9).unwrap();
    let found: Vec<_> = tellers.iter().map(|one| (one.execution, one.seen, one.number)).collect();
    assert_eq!(found, [(ONE, 0, 0)]);
    assert_eq!(tellers[0].webhook.url, "https://example.org/");
    assert!(store.reader().unwrap().tellers(tellers[0].place, 9).unwrap().is_empty());
    assert!(store.reader().unwrap().teller(OTHER).unwrap().is_none());
}

#[test]
fn deliveries_are_numbered_by_one_alone_and_wait_in_order() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    assert_eq!(add(&mut store, 1..=2), Applied::Done);
    assert_eq!(add(&mut store, 2..=3), Applied::Duplicate, "2 is taken");
    assert_eq!(add(&mut store, 3..=3), Applied::Done);
    assert_eq!(pending(&store), [1, 2, 3]);
    assert_eq!(tried(&mut store, 1, DeliveryState::Delivered), Applied::Done);
    assert_eq!(tried(&mut store, 2, DeliveryState::Pending), Applied::Done);
    let mut reader = store.reader().unwrap();
    let waits = reader.pending(ONE, 1).unwrap().remove(0);
    assert_eq!((waits.delivery.number, waits.due, waits.attempts), (2, Some(Millis(77)), 1));
    assert_eq!((waits.answer, waits.error.as_deref()), (Some(500), Some("no")));
    let teller = reader.teller(ONE).unwrap().unwrap();
    assert_eq!((teller.seen, teller.number), (99, 3));
    assert_eq!(reader.told(ONE, "node.started").unwrap(), [10, 20, 30]);
    assert_eq!(reader.backlog(9).unwrap(), 2);
}

#[test]
fn it_is_closed_when_nothing_waits_and_opened_by_a_redelivery() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    add(&mut store, 1..=3);
    tried(&mut store, 1, DeliveryState::Delivered);
    assert_eq!(keep(&mut store, Entry::ToldAll { execution: ONE }), Applied::Duplicate, "two wait");
    let give_up = Entry::GivenUp { execution: ONE, why: "enough".to_owned(), at: Millis(8) };
    assert_eq!(keep(&mut store, give_up), Applied::Done);
    assert_eq!(
        (pending(&store), keep(&mut store, Entry::ToldAll { execution: ONE })),
        (vec![], Applied::Done)
    );
    assert!(store.reader().unwrap().tellers(0, 9).unwrap().is_empty());
    let redeliver = |tenant: &str, number| Entry::Redeliver {
        tenant: Tenant::new(tenant),
        execution: ONE,
        number,
        at: Millis(9),
    };
    assert_eq!(keep(&mut store, redeliver("other", 2)), Applied::Duplicate, "another tenant's");
    assert_eq!(keep(&mut store, redeliver("default", 4)), Applied::Duplicate, "there is none");
    assert_eq!(keep(&mut store, redeliver("default", 2)), Applied::Done);
    assert_eq!(pending(&store), [2]);
    assert_eq!(store.reader().unwrap().tellers(0, 9).unwrap().len(), 1);
}

#[test]
fn what_comes_after_a_receiver_was_given_up_is_given_up_until_a_redelivery() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    add(&mut store, 1..=2);
    tried(&mut store, 1, DeliveryState::GivenUp);
    let give_up = Entry::GivenUp { execution: ONE, why: "1 was".to_owned(), at: Millis(8) };
    assert_eq!(keep(&mut store, give_up), Applied::Done);
    assert_eq!(add(&mut store, 3..=4), Applied::Done);
    assert_eq!(pending(&store), [0_u64; 0]);
    let later = store.reader().unwrap().deliveries(&query("default")).unwrap().remove(0);
    assert_eq!((later.delivery.number, later.state, later.due), (4, DeliveryState::GivenUp, None));
    assert_eq!((later.attempts, later.error.as_deref()), (0, Some("1 was")));
    let redeliver = Entry::Redeliver { tenant: Tenant::default(), execution: ONE, number: 1, at: Millis(9) };
    assert_eq!(keep(&mut store, redeliver), Applied::Done);
    assert_eq!(add(&mut store, 5..=5), Applied::Done);
    assert_eq!(pending(&store), [1, 5], "what was given up between stays so");
}

#[test]
fn the_check_tells_of_a_delivery_that_waits_for_a_receiver_that_is_given_up() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    add(&mut store, 1..=2);
    let give_up = Entry::GivenUp { execution: ONE, why: "enough".to_owned(), at: Millis(8) };
    keep(&mut store, give_up);
    let is_told = || {
        let report = check(&mut store.reader().unwrap(), &mut |_| {}).unwrap();
        report.problems.iter().any(|problem| problem.what == "row 2 waits for a receiver that is given up")
    };
    assert!(!is_told());
    folder.raw().execute_batch("UPDATE deliveries SET state = 'pending' WHERE number = 2").unwrap();
    assert!(is_told());
}

#[test]
fn the_log_is_read_by_its_tenant_newest_first() {
    let folder = Folder::new();
    let mut store = folder.open();
    begin(&mut store, ONE, true);
    add(&mut store, 1..=3);
    tried(&mut store, 2, DeliveryState::Delivered);
    let mut reader = store.reader().unwrap();
    let mut numbers = |query: &DeliveryQuery| -> Vec<u64> {
        reader.deliveries(query).unwrap().iter().map(|found| found.delivery.number).collect()
    };
    assert_eq!(numbers(&query("default")), [3, 2, 1]);
    assert_eq!(numbers(&query("other")), [0_u64; 0]);
    let delivered = Some(DeliveryState::Delivered);
    assert_eq!(numbers(&DeliveryQuery { state: delivered, execution: Some(ONE), ..query("default") }), [2]);
    assert_eq!(numbers(&DeliveryQuery { event: Some("x".to_owned()), ..query("default") }), [0_u64; 0]);
    assert_eq!(numbers(&DeliveryQuery { limit: 1, ..query("default") }), [3]);
    assert_eq!(numbers(&DeliveryQuery { before: Some(2), ..query("default") }), [1]);
    assert_eq!(numbers(&DeliveryQuery { number: Some(1), ..query("default") }), [1]);
}
