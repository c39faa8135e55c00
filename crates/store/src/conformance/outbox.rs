//! Deliveries of events to webhooks.

use super::world::{World, chain};
use super::{ServerSite, commit, entry, reader, written};
use crate::commit::Applied;
use crate::entry::Entry;
use crate::origin::{Tenant, Webhook};
use crate::outbox::{DeliveryAttempt, DeliveryQuery, DeliveryState, NewDeliveries, NewDelivery, Outbox as _};
use crate::store::Store;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Millis};

const ONE: ExecutionId = ExecutionId(1);
const OTHER: ExecutionId = ExecutionId(2);

/// Two executions, of which the first has a webhook.
fn begin(store: &mut impl Store) {
    for id in [ONE, OTHER] {
        let mut begun = World::new(&chain(1)).begin(Create::new(id, json!({})));
        let (url, events) = ("https://example.org/".to_owned(), vec!["execution.completed".to_owned()]);
        let webhook = (id == ONE).then_some(Webhook { url, events });
        if let Some(creation) = &mut begun.creation {
            Arc::make_mut(&mut creation.origin).options.webhook = webhook;
        }
        written(store, &[commit(begun)]);
    }
}

fn add(store: &mut impl Store, numbers: std::ops::RangeInclusive<u64>) -> Applied {
    let made = numbers.map(|number| NewDelivery {
        number,
        message: number * 10,
        event: "node.started".to_owned(),
        body: format!("{{\"n\":{number}}}"),
    });
    let new = NewDeliveries { execution: ONE, seen: 99, made: made.collect(), at: Millis(5) };
    entry(store, Entry::Deliveries(Box::new(new)))
}

fn tried(store: &mut impl Store, number: u64, state: DeliveryState) -> Applied {
    let (due, error) = (Some(Millis(77)), Some("no".to_owned()));
    let tried = DeliveryAttempt {
        execution: ONE,
        number,
        state,
        attempts: 1,
        due,
        answer: Some(500),
        error,
        at: Millis(6),
    };
    entry(store, Entry::DeliveryAttempted(Box::new(tried)))
}

fn give_up(store: &mut impl Store, why: &str) {
    let give_up = Entry::GivenUp { execution: ONE, why: why.to_owned(), at: Millis(8) };
    assert_eq!(entry(store, give_up), Applied::Done);
}

fn redeliver(store: &mut impl Store, of: &str, number: u64) -> Applied {
    let tenant = Tenant::new(of);
    entry(store, Entry::Redeliver { tenant, execution: ONE, number, at: Millis(9) })
}

fn pending<P: ServerSite>(store: &P::Store) -> Vec<u64> {
    let found = reader(store).pending(ONE, 9).expect("deliveries");
    found.iter().map(|found| found.delivery.number).collect()
}

fn query(tenant: &str) -> DeliveryQuery {
    let tenant = Tenant::new(tenant);
    DeliveryQuery { tenant, execution: None, number: None, state: None, event: None, before: None, limit: 9 }
}

pub fn an_execution_with_a_webhook_is_listed_from_its_first_commit_on<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    let mut reader = reader(&store);
    let sources = reader.delivery_sources(0, 9).expect("a list");
    let found: Vec<_> = sources.iter().map(|one| (one.execution, one.seen, one.number)).collect();
    assert_eq!(found, [(ONE, 0, 0)]);
    assert_eq!(
        (sources[0].webhook.url.as_str(), &sources[0].tenant),
        ("https://example.org/", &Tenant::default())
    );
    assert!(reader.delivery_sources(sources[0].place, 9).expect("a list").is_empty());
    assert_eq!(reader.delivery_source(ONE).expect("an answer").as_ref(), sources.first());
    assert!(reader.delivery_source(OTHER).expect("an answer").is_none());
}

pub fn deliveries_have_one_numbering_and_wait_in_order<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    assert_eq!(add(&mut store, 1..=2), Applied::Done);
    assert_eq!(add(&mut store, 2..=3), Applied::Duplicate, "2 is taken");
    assert_eq!(add(&mut store, 3..=3), Applied::Done);
    assert_eq!(pending::<P>(&store), [1, 2, 3]);
    assert_eq!(tried(&mut store, 1, DeliveryState::Delivered), Applied::Done);
    assert_eq!(tried(&mut store, 2, DeliveryState::Pending), Applied::Done);
    assert_eq!(tried(&mut store, 9, DeliveryState::Pending), Applied::Duplicate);
    let mut reader = reader(&store);
    let waits = reader.pending(ONE, 1).expect("deliveries").remove(0);
    assert_eq!((waits.delivery.number, waits.due, waits.attempts), (2, Some(Millis(77)), 1));
    assert_eq!((waits.answer, waits.error.as_deref()), (Some(500), Some("no")));
    let source = reader.delivery_source(ONE).expect("an answer").expect("it has a webhook");
    assert_eq!((source.seen, source.number), (99, 3));
    assert_eq!(reader.delivered_messages(ONE, "node.started"), Ok(vec![10, 20, 30]));
    assert_eq!(reader.delivered_messages(ONE, "node.failed"), Ok(Vec::new()));
    assert_eq!((reader.backlog(9), reader.backlog(1)), (Ok(2), Ok(1)));
}

pub fn an_outbox_is_closed_when_nothing_is_pending_and_opened_by_a_redelivery<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    add(&mut store, 1..=3);
    tried(&mut store, 1, DeliveryState::Delivered);
    let close = Entry::OutboxClosed { execution: ONE };
    assert_eq!(entry(&mut store, close.clone()), Applied::Duplicate, "two are pending");
    give_up(&mut store, "enough");
    assert_eq!((pending::<P>(&store), entry(&mut store, close)), (vec![], Applied::Done));
    assert!(reader(&store).delivery_sources(0, 9).expect("a list").is_empty());
    assert_eq!(redeliver(&mut store, "other", 2), Applied::Duplicate, "another tenant's");
    assert_eq!(redeliver(&mut store, "default", 4), Applied::Duplicate, "there is none");
    assert_eq!(redeliver(&mut store, "default", 2), Applied::Done);
    assert_eq!(pending::<P>(&store), [2]);
    assert_eq!(reader(&store).delivery_sources(0, 9).expect("a list").len(), 1);
}

pub fn deliveries_to_a_receiver_that_was_given_up_are_given_up<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    add(&mut store, 1..=2);
    tried(&mut store, 1, DeliveryState::GivenUp);
    give_up(&mut store, "1 was");
    assert_eq!(add(&mut store, 3..=4), Applied::Done);
    assert_eq!(pending::<P>(&store), [0_u64; 0]);
    let later = reader(&store).deliveries(&query("default")).expect("deliveries").remove(0);
    assert_eq!((later.delivery.number, later.state, later.due), (4, DeliveryState::GivenUp, None));
    assert_eq!((later.attempts, later.error.as_deref()), (0, Some("1 was")));
    assert_eq!(redeliver(&mut store, "default", 1), Applied::Done);
    assert_eq!(add(&mut store, 5..=5), Applied::Done);
    assert_eq!(pending::<P>(&store), [1, 5], "those given up between them stay so");
}

pub fn deliveries_are_listed_newest_first_by_their_tenant<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    add(&mut store, 1..=3);
    tried(&mut store, 2, DeliveryState::Delivered);
    let mut reader = reader(&store);
    let all = reader.deliveries(&query("default")).expect("deliveries");
    assert_eq!((all[0].url.as_str(), all[0].delivery.body.as_str()), ("https://example.org/", r#"{"n":3}"#));
    let own = query("default");
    let cases = [
        (own.clone(), vec![3, 2, 1]),
        (query("other"), vec![]),
        (
            DeliveryQuery { state: Some(DeliveryState::Delivered), execution: Some(ONE), ..own.clone() },
            vec![2],
        ),
        (DeliveryQuery { execution: Some(OTHER), ..own.clone() }, vec![]),
        (DeliveryQuery { event: Some("x".to_owned()), ..own.clone() }, vec![]),
        (DeliveryQuery { limit: 1, ..own.clone() }, vec![3]),
        (DeliveryQuery { before: Some(all[1].place), ..own.clone() }, vec![1]),
        (DeliveryQuery { number: Some(1), ..own }, vec![1]),
    ];
    for (query, expected) in cases {
        let found = reader.deliveries(&query).expect("deliveries");
        let numbers: Vec<u64> = found.iter().map(|found| found.delivery.number).collect();
        assert_eq!(numbers, expected, "{query:?}");
    }
}
