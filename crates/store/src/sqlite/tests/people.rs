//! Step-runs that wait for people, as earlier releases wrote them.

use super::Folder;
use crate::conformance::world::{World, net, task, with};
use crate::sqlite::tasks::classify_asked;
use crate::{Store as _, TaskQuery, Tasks as _, Tenant, Write};
use serde_json::json;

#[test]
fn rows_of_earlier_releases_are_moved_to_their_class() {
    let folder = Folder::new();
    let manual = json!({ "completion": { "manual": {} } });
    let waits =
        net(json!({ "steps": [with(task("a", &[]), manual), task("b", &[])], "policy": { "join": "all" } }));
    let (mut world, created) = World::create(&waits, 7);
    let mut store = folder.open();
    let asked = world.done(json!(1));
    store.write(&[Write::Commit(Box::new(created)), Write::Commit(Box::new(asked))]).unwrap();
    let find = |limit| TaskQuery { tenant: Tenant::default(), execution: None, after: None, limit };
    let new = store.reader().unwrap().tasks(&find(9)).unwrap();
    drop(store);
    let raw = folder.raw();
    let old = "UPDATE step_runs SET class = 1, tenant = NULL, asked_at = NULL WHERE class = 2";
    assert_eq!(raw.execute(old, []).unwrap(), 1);
    classify_asked(&raw).unwrap();
    drop(raw);
    let store = folder.open();
    assert_eq!(store.reader().unwrap().tasks(&find(9)).unwrap(), new);
    assert_eq!(new.len(), 1);
}
