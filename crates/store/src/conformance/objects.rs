//! Copies of artifacts in an object store, and executions that wait for them.

use super::tasks::of_tenant;
use super::world::{World, net, task, with};
use super::{ServerSite, commit, entry, pages, reader, written};
use crate::commit::{Applied, Write};
use crate::entry::Entry;
use crate::objects::{
    AwaitedUploads, ObjectChange, ObjectLoad, ObjectState, ObjectWrite, Objects as _, PutArtifact,
    StoredObject, UploadPolicy,
};
use crate::origin::Tenant;
use crate::quarantine::Suspect;
use crate::store::Store;
use serde_json::json;
use std::collections::BTreeSet;
use windlass_kernel::{Create, ExecutionId, Input, Millis, Phase};

const POLICY: UploadPolicy =
    UploadPolicy { attempts_max: 1, delay_ms: 10, delay_max_ms: 10, failed_delay_ms: 100 };

fn write(store: &mut impl Store, write: ObjectWrite) -> Applied {
    entry(store, Entry::Object(Box::new(write)))
}

fn put(tenant: &str, key: &str, at: i64) -> ObjectWrite {
    let (tenant, key) = (Tenant::new(tenant), key.to_owned());
    ObjectWrite::Put(PutArtifact { tenant, key, bytes: 7, at: Millis(at) })
}

fn change(tenant: &str, key: &str, change: ObjectChange, at: i64) -> ObjectWrite {
    ObjectWrite::Change { tenant: Tenant::new(tenant), key: key.to_owned(), change, at: Millis(at) }
}

fn waiting(tenant: &str, key: &str, at: i64) -> StoredObject {
    StoredObject {
        tenant: Tenant::new(tenant),
        key: key.to_owned(),
        bytes: 7,
        state: ObjectState::Waiting,
        attempts: 0,
        claimed: false,
        due: Some(Millis(at)),
        error: None,
        put_at: Millis(at),
    }
}

pub fn copies_of_artifacts_are_uploaded_and_deleted_by_attempts<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let claim = || ObjectChange::Claim { until: Millis(1_000) };
    let failed = ObjectChange::Failed { attempt: 1, error: "down".to_owned(), policy: POLICY };
    let cases = [
        (put("a", "k1", 1), Applied::Done),
        (put("a", "k1", 1), Applied::Duplicate),
        (put("a", "k2", 2), Applied::Done),
        (put("b", "k1", 3), Applied::Done),
        (put("a", "k3", 4), Applied::Done),
        (change("a", "k4", claim(), 9), Applied::Duplicate),
        (change("a", "k1", claim(), 9), Applied::Done),
        (change("a", "k1", claim(), 9), Applied::Duplicate),
        (change("a", "k1", ObjectChange::Uploaded { attempt: 2 }, 10), Applied::Duplicate),
        (change("a", "k1", ObjectChange::Uploaded { attempt: 1 }, 10), Applied::Done),
        (change("a", "k2", claim(), 9), Applied::Done),
        (change("a", "k2", failed, 10), Applied::Done),
        (change("a", "k3", ObjectChange::Discard { put_before: Millis(5) }, 9), Applied::Done),
        (change("a", "k3", claim(), 9), Applied::Done),
        (change("a", "k3", ObjectChange::Deleted { attempt: 1 }, 9), Applied::Done),
        (change("b", "k1", claim(), 9), Applied::Done),
    ];
    for (one, applied) in cases {
        assert_eq!(write(&mut store, one.clone()), applied, "{one:?}");
    }
    drop(store);
    let mut store = site.open();
    let stored = StoredObject { state: ObjectState::Stored, due: None, ..waiting("a", "k1", 1) };
    let failed = StoredObject {
        state: ObjectState::Failed,
        attempts: 1,
        due: Some(Millis(110)),
        error: Some("down".to_owned()),
        ..waiting("a", "k2", 2)
    };
    let claimed =
        StoredObject { claimed: true, attempts: 1, due: Some(Millis(1_000)), ..waiting("b", "k1", 3) };
    let expected = [stored.clone(), failed.clone(), claimed.clone()];
    for size in 1..4 {
        let mut reader = reader(&store);
        let listed = pages(size, |after: Option<&StoredObject>, limit| {
            let after = after.map(|object| (&object.tenant, object.key.as_str()));
            reader.objects(after, limit).expect("objects")
        });
        assert_eq!(listed, expected, "pages of {size}");
    }
    assert_eq!(reader(&store).object(&Tenant::new("a"), "k1"), Ok(Some(stored)));
    assert_eq!(reader(&store).object(&Tenant::new("c"), "k1"), Ok(None));
    assert_eq!(reader(&store).due_objects(9), Ok(vec![failed.clone(), claimed.clone()]));
    assert_eq!(reader(&store).object_load(9), Ok(ObjectLoad { waiting: 1, failed: 1 }));
    assert_eq!(reader(&store).object_load(1), Ok(ObjectLoad { waiting: 0, failed: 1 }));
    assert_eq!(write(&mut store, ObjectWrite::EndClaims { at: Millis(50) }), Applied::Done);
    assert_eq!(write(&mut store, ObjectWrite::EndClaims { at: Millis(51) }), Applied::Duplicate);
    let ended = StoredObject { claimed: false, due: Some(Millis(50)), ..claimed };
    assert_eq!(reader(&store).due_objects(9), Ok(vec![failed, ended]));
}

pub fn another_object_store_has_no_copies_yet<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let place = |place: &str, at| ObjectWrite::Place { place: place.to_owned(), at: Millis(at) };
    let claim = || ObjectChange::Claim { until: Millis(1_000) };
    assert_eq!(reader(&store).object_place(), Ok(None));
    let cases = [
        (place("s3://one", 1), Applied::Done),
        (place("s3://one", 2), Applied::Duplicate),
        (put("a", "k1", 1), Applied::Done),
        (change("a", "k1", claim(), 2), Applied::Done),
        (change("a", "k1", ObjectChange::Uploaded { attempt: 1 }, 3), Applied::Done),
        (put("a", "k2", 1), Applied::Done),
        (change("a", "k2", ObjectChange::Discard { put_before: Millis(9) }, 3), Applied::Done),
        (place("s3://two", 5), Applied::Done),
    ];
    for (one, applied) in cases {
        assert_eq!(write(&mut store, one.clone()), applied, "{one:?}");
    }
    let again = StoredObject { due: Some(Millis(5)), ..waiting("a", "k1", 1) };
    assert_eq!(reader(&store).objects(None, 9), Ok(vec![again]));
    assert_eq!(reader(&store).object_place(), Ok(Some("s3://two".to_owned())));
}

pub fn every_tenant_has_its_earliest_objects_listed<P: ServerSite>(site: &P) {
    let mut store = site.open();
    for (tenant, at) in [("b", 5), ("a", 9), ("a", 2), ("c", 7), ("a", 4)] {
        write(&mut store, put(tenant, &format!("k{at}"), at));
    }
    let due = |each| reader(&store).due_objects(each).expect("objects");
    let of = |expected: &[(&str, i64)]| -> Vec<StoredObject> {
        expected.iter().map(|(tenant, at)| waiting(tenant, &format!("k{at}"), *at)).collect()
    };
    assert_eq!(due(1), of(&[("a", 2), ("b", 5), ("c", 7)]));
    assert_eq!(due(2), of(&[("a", 2), ("a", 4), ("b", 5), ("c", 7)]));
}

pub fn executions_that_wait_for_uploads_are_found_with_what_they_name<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let key = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let policy = json!({
        "join": "all", "recovery": "restart_execution", "affinity": "one_worker", "finish": "uploads"
    });
    let plan = net(json!({ "steps": [task("s", &[])], "policy": policy }));
    let summed = net(json!({
        "steps": [task("s", &[]), with(task("f", &[]), json!({}))],
        "policy": { "join": "each", "entry": 0, "finish": { "step": 1 } }
    }));
    written(&mut store, &[Write::Net(plan.clone()), Write::Net(summed.clone())]);
    let mut worlds = Vec::new();
    for (id, tenant) in [(5, "a"), (3, "b"), (9, "a"), (7, "a")] {
        let mut world = World::new(&plan);
        let inputs = json!({ "in": { "$artifact": key("a"), "bytes": 1 } });
        let begun = world.begin(Create::new(ExecutionId(id), inputs));
        written(&mut store, &[commit(of_tenant(begun, tenant))]);
        let assigned = world.give(&Input::Assign { worker: "host".into() });
        let begun = world.give(&Input::Begin);
        written(&mut store, &[commit(assigned), commit(begun)]);
        worlds.push(world);
    }
    // One is still running; the one with a final step waits for no upload.
    for world in &mut worlds[..3] {
        let done = world.done(json!({ "out": { "$artifact": key("b"), "bytes": 1 } }));
        written(&mut store, &[commit(done)]);
        assert_eq!(world.state.phase(), Phase::Finalizing);
    }
    let (mut other, begun) = World::create(&summed, 8);
    let done = other.done(json!(1));
    written(&mut store, &[commit(begun), commit(done)]);
    assert_eq!(other.state.phase(), Phase::Finalizing);
    let awaited =
        |id, tenant: &str| AwaitedUploads { execution: ExecutionId(id), tenant: Tenant::new(tenant) };
    let found = |store: &P::Store, size| {
        let mut reader = reader(store);
        pages(size, |after: Option<&AwaitedUploads>, limit| {
            reader.awaited_uploads(after.map(|one| one.execution), limit).expect("executions")
        })
    };
    for size in 1..5 {
        let expected = [awaited(5, "a"), awaited(3, "b"), awaited(9, "a")];
        assert_eq!(found(&store, size), expected, "pages of {size}");
    }
    let named = |id| reader(&store).named_artifacts(ExecutionId(id)).expect("keys");
    assert_eq!(named(5), BTreeSet::from([key("a"), key("b")]));
    assert_eq!(named(7), BTreeSet::from([key("a")]));
    assert_eq!(named(404), BTreeSet::new());
    let uploaded = worlds[0].give(&Input::Uploaded { failure: None });
    written(&mut store, &[commit(uploaded)]);
    let suspect = Suspect {
        execution: ExecutionId(3),
        version: 1,
        deaths: 3,
        quarantined_at: Some(Millis(5)),
        reason: "it died".to_owned(),
    };
    assert_eq!(entry(&mut store, Entry::Suspect(Box::new(suspect))), Applied::Done);
    drop(store);
    assert_eq!(found(&site.open(), 2), [awaited(9, "a")]);
}
