//! Offers in the hands of workers: leases, cursors, stop obligations.

use super::world::{World, circle, net, task, with};
use super::{StoreSite, answered, commit, pages, reader, written};
use crate::commit::{Applied, Lease, Progress, Session, Stop, Write};
use crate::store::{Offer, Reader, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{AgentAsk, Fence, Input, LeaseLost, LeaseUnit, Loss, Millis, RunId, StepId};

fn only_offer(store: &impl Store) -> Offer {
    let offers = reader(store).offers(None, 10).expect("offers");
    assert_eq!(offers.len(), 1, "{offers:?}");
    offers[0].clone()
}

fn checkpoint(lease: Lease, cursor: Value) -> Write {
    let Lease { execution, run, fence, .. } = lease;
    Write::Checkpoint { execution, run, fence, cursor: Arc::new(cursor) }
}

pub fn an_offer_is_leased_once<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (world, created) = World::create(&circle(), 1);
    let lease = world.lease(1);
    assert_eq!(answered(&mut store, Write::Lease(lease)), Applied::Fenced, "there is no such execution");
    written(&mut store, &[commit(created)]);
    assert_eq!(only_offer(&store).lease, None);
    let elsewhere = [
        Lease { fence: lease.fence.next(), ..lease },
        Lease { run: lease.run.next(), ..lease },
        Lease { fence: Fence(0), ..lease },
    ];
    for wrong in elsewhere {
        assert_eq!(answered(&mut store, Write::Lease(wrong)), Applied::Fenced, "{wrong:?}");
    }
    assert_eq!(answered(&mut store, Write::Lease(lease)), Applied::Done);
    assert_eq!(only_offer(&store).lease, Some(lease));
    let thief = Lease { session: Session(2), ..lease };
    assert_eq!(answered(&mut store, Write::Lease(thief)), Applied::Fenced);
    // The one who has it may say that the work has begun.
    let begun = Lease { started_at: Some(Millis(1_001)), ..lease };
    assert_eq!(answered(&mut store, Write::Lease(begun)), Applied::Done);
    assert_eq!(only_offer(&store).lease, Some(begun));
}

pub fn a_commit_may_lease_its_own_offers<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, mut created) = World::create(&circle(), 1);
    let lease = Lease { started_at: Some(world.now), ..world.lease(3) };
    created.leases.push(lease);
    written(&mut store, &[commit(created)]);
    assert_eq!(only_offer(&store).lease, Some(lease));
    let mut done = world.done(json!(1));
    let next = world.lease(4);
    done.leases.push(next);
    written(&mut store, &[commit(done)]);
    assert_eq!(only_offer(&store).lease, Some(next));
}

pub fn a_new_offer_clears_the_lease_before_it<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    let lease = world.lease(1);
    written(&mut store, &[commit(created), Write::Lease(lease), checkpoint(lease, json!({ "at": 2 }))]);
    assert_eq!(only_offer(&store).cursor, Some(Arc::new(json!({ "at": 2 }))));
    let unit = LeaseUnit::Run { run: lease.run, fence: lease.fence };
    let lost = world.give(&Input::LeaseLost(LeaseLost { unit, loss: Loss::NotStarted, cursor: None }));
    written(&mut store, &[commit(lost)]);
    let offer = only_offer(&store);
    assert_eq!((offer.run, offer.lease, offer.cursor), (lease.run, None, None));
    assert!(offer.fence > lease.fence, "the fence rises");
    assert_eq!(answered(&mut store, Write::Lease(lease)), Applied::Fenced);
    assert_eq!(answered(&mut store, checkpoint(lease, json!(1))), Applied::Fenced);
}

pub fn a_change_within_an_offer_keeps_its_lease<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let tool = with(task("tool", &[]), json!({ "on_demand": true }));
    let agents = net(json!({ "steps": [task("agent", &[]), tool], "policy": { "join": "all" } }));
    let (mut world, created) = World::create(&agents, 1);
    let lease = world.lease(1);
    written(&mut store, &[commit(created), Write::Lease(lease), checkpoint(lease, json!(7))]);
    let ask = AgentAsk::Execute { step: StepId(1), args: None };
    let asked = Input::Agent { run: lease.run, fence: lease.fence, call: "c1".into(), ask };
    written(&mut store, &[commit(world.give(&asked))]);
    let offers = reader(&store).offers(None, 10).expect("offers");
    let agent = offers.iter().find(|offer| offer.run == lease.run).expect("the agent's offer");
    assert_eq!((agent.lease, &agent.cursor), (Some(lease), &Some(Arc::new(json!(7)))));
    assert_eq!(offers.len(), 2);
    assert_eq!(reader(&store).load(world.id()).expect("a state").expect("it is there").state, world.state);
}

pub fn a_cursor_needs_the_lease<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (world, created) = World::create(&circle(), 1);
    let lease = world.lease(1);
    assert_eq!(answered(&mut store, checkpoint(lease, json!(0))), Applied::Fenced);
    written(&mut store, &[commit(created)]);
    assert_eq!(answered(&mut store, checkpoint(lease, json!(1))), Applied::Fenced, "no worker has it");
    written(&mut store, &[Write::Lease(lease)]);
    let other = Lease { fence: lease.fence.next(), ..lease };
    assert_eq!(answered(&mut store, checkpoint(other, json!(2))), Applied::Fenced);
    assert_eq!(only_offer(&store).cursor, None);
    for cursor in [json!({ "next": "b", "floats": [0.1, 1e300] }), json!(null), json!({ "next": "c" })] {
        assert_eq!(answered(&mut store, checkpoint(lease, cursor.clone())), Applied::Done);
        assert_eq!(only_offer(&store).cursor, Some(Arc::new(cursor)));
    }
}

pub fn progress_needs_the_lease<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    let lease = world.lease(1);
    let progress = |percentage| Progress { step: "half".into(), percentage };
    let report = |lease: Lease, percentage| {
        let Lease { execution, run, fence, .. } = lease;
        Write::Progress { execution, run, fence, progress: progress(percentage) }
    };
    assert_eq!(answered(&mut store, report(lease, 1)), Applied::Fenced);
    written(&mut store, &[commit(created)]);
    assert_eq!(answered(&mut store, report(lease, 1)), Applied::Fenced, "it is not leased");
    written(&mut store, &[Write::Lease(lease), report(lease, 40), report(lease, 50)]);
    let other = Lease { fence: lease.fence.next(), ..lease };
    assert_eq!(answered(&mut store, report(other, 60)), Applied::Fenced);
    assert_eq!(only_offer(&store).progress, Some(progress(50)));
    written(&mut store, &[commit(world.done(json!(1)))]);
    assert_eq!(only_offer(&store).progress, None, "another offer begins without");
}

pub fn nothing_is_leased_after_a_refused_commit<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    let mut late = world.clone();
    let (first, stale) = (world.done(json!(1)), late.done(json!(2)));
    written(&mut store, &[commit(first)]);
    // By chance both offer the same run under the same fence; the second offer is of a commit that never was.
    let lease = late.lease(1);
    let progress = Progress { step: "half".into(), percentage: 50 };
    let Lease { execution, run, fence, .. } = lease;
    let progress = Write::Progress { execution, run, fence, progress };
    let batch = [commit(stale), Write::Lease(lease), checkpoint(lease, json!(1)), progress];
    let applied = store.write(&batch).expect("a healthy store");
    assert_eq!(applied, [Applied::Conflict, Applied::Fenced, Applied::Fenced, Applied::Fenced]);
    assert_eq!(only_offer(&store).lease, None);
}

pub fn what_must_stop_is_listed_until_it_has<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let mut stops = Vec::new();
    for id in 1..=3 {
        let (world, mut created) = World::create(&circle(), id);
        let stop = |n: u64| Stop {
            execution: world.id(),
            run: RunId(n),
            fence: Fence(n + 5),
            session: Session(u64::MAX - n),
        };
        created.stops = (1..=3).map(stop).collect();
        stops.extend(created.stops.clone());
        written(&mut store, &[commit(created)]);
    }
    let listed = |store: &P::Store, size| {
        let mut reader = reader(store);
        pages(size, |after, limit| reader.stops(after, limit).expect("stops"))
    };
    for size in 1..10 {
        assert_eq!(listed(&store, size), stops);
    }
    let gone = stops.remove(4);
    assert_eq!(answered(&mut store, Write::Stopped(gone)), Applied::Done);
    assert_eq!(answered(&mut store, Write::Stopped(gone)), Applied::Duplicate);
    assert_eq!(listed(&store, 2), stops);
}
