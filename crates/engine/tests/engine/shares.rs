//! Slots among tenants, over a real store, with a worker that answers from the test.

use crate::rig::{Rig, chain};
use serde_json::json;
use std::collections::BTreeMap;
use windlass_engine::{EngineAnswer, Limits, Request, Share, SlotLimits, Start};
use windlass_protocol::Work;
use windlass_store::Tenant;

fn start(rig: &Rig, tenant: &str, count: usize) {
    let definition = rig.define("one", chain(1));
    for _ in 0..count {
        let mut start = Start::by_hand(definition, json!({}), json!({}));
        std::sync::Arc::make_mut(&mut start.origin).tenant = Tenant::new(tenant);
        assert!(matches!(rig.call(Request::Start(Box::new(start))), EngineAnswer::Started(_)));
    }
}

fn works(rig: &Rig, count: usize) -> Vec<Work> {
    (0..count).map(|_| rig.work()).collect()
}

fn tenants(works: &[Work]) -> Vec<&str> {
    works.iter().map(|work| work.tenant.as_str()).collect()
}

#[test]
fn a_tenant_alone_has_all_slots_and_a_later_one_gets_the_next_that_is_free() {
    let rig = Rig::with_slots(4);
    start(&rig, "long", 9);
    let first = works(&rig, 4);
    assert_eq!(tenants(&first), ["long"; 4]);
    start(&rig, "late", 3);
    assert!(rig.idle(), "nothing that runs is stopped");
    let mut got = Vec::new();
    for work in &first {
        rig.done(work, json!(1));
        got.push(rig.work());
    }
    assert_eq!(tenants(&got), ["late", "late", "long", "long"], "half of them, and no more");
}

#[test]
fn a_limit_holds_back_its_tenant_alone_until_it_is_lifted() {
    let mut rig = Rig::with_slots(4);
    let slots = SlotLimits { each: Share::All, own: BTreeMap::from([(Tenant::new("bound"), Some(1))]) };
    assert_eq!(rig.call(Request::Limit(Limits { slots, ..Limits::default() })), EngineAnswer::Accepted);
    start(&rig, "bound", 3);
    let bound = works(&rig, 1);
    assert!(rig.idle(), "there are free slots, and not for them");
    start(&rig, "free", 3);
    assert_eq!(tenants(&works(&rig, 3)), ["free"; 3]);
    rig.done(&bound[0], json!(1));
    assert_eq!(tenants(&works(&rig, 1)), ["bound"]);
    assert!(rig.idle());
    // Waiting work is known after a restart, too; limits are set by the starter of the engine.
    rig.restart();
    let mut after = works(&rig, 4);
    rig.done(&after[0], json!(1));
    after.extend(works(&rig, 1));
    assert_eq!(tenants(&after).iter().filter(|tenant| **tenant == "bound").count(), 2, "{after:?}");
}

#[test]
fn lifting_a_limit_lets_go_on_what_waits() {
    let rig = Rig::with_slots(4);
    let limit = |each| {
        let slots = SlotLimits { each, own: BTreeMap::new() };
        rig.call(Request::Limit(Limits { slots, ..Limits::default() }))
    };
    limit(Share::AtMost(1));
    start(&rig, "bound", 3);
    works(&rig, 1);
    assert!(rig.idle());
    limit(Share::All);
    assert_eq!(tenants(&works(&rig, 2)), ["bound"; 2]);
}
