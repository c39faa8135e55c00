//! Rows that wait for people, and tags, as earlier releases wrote them.

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

#[test]
fn an_older_store_gets_the_tenants_of_gates_and_the_phases_of_tags() {
    let folder = Folder::new();
    let raw = folder.older(32);
    raw.execute_batch(
        "INSERT INTO executions (key, id, net, trigger, inputs, created_at, tenant) \
         VALUES (1, x'01', x'', 'api', '{}', 7, 'fleet'), (2, x'02', x'', 'api', '{}', 9, 'default');
         INSERT INTO heads (key, version, last, phase, held, at, due, goes_on, tenant, workflow, state) \
         VALUES (1, 4, 2, 3, 0, 8, NULL, 0, 'fleet', NULL, x'aa'), (2, 1, 3, 10, 1, 9, NULL, 1, 'default', NULL, x'bb');
         INSERT INTO parts (execution, part, key, value) VALUES (1, 2, x'91', x'00'), (1, 3, x'92', x'00');
         INSERT INTO tags (tag, execution) VALUES ('x', 1), ('x', 2)",
    )
    .unwrap();
    crate::sqlite::migrate::apply_next(&raw, 32).unwrap();
    let read = |sql: &str| -> Vec<String> {
        raw.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let gates = "SELECT concat_ws(' ', execution, part, tenant, asked_at) FROM parts ORDER BY part";
    assert_eq!(read(gates), ["1 2 fleet 8", "1 3"]);
    let tags = "SELECT concat_ws(' ', tag, execution, tenant, phase) FROM tags ORDER BY execution";
    assert_eq!(read(tags), ["x 1 fleet 3", "x 2 default 10"]);
}
