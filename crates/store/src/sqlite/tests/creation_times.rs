//! The numbers between which a list of a time looks.

use super::{Folder, write};
use crate::conformance::world::{World, circle};
use crate::sqlite::creation::{first_key_after, last_key_before};
use serde_json::json;
use windlass_kernel::{Create, ExecutionId, Millis};

#[test]
fn a_clock_that_was_set_back_hides_no_execution_from_a_list_of_a_time() {
    let folder = Folder::new();
    drop(folder.open());
    let raw = folder.raw();
    // The clock of the second block was set back.
    let blocks = "INSERT INTO creation_times VALUES (0, 10, 20), (1, 5, 8), (2, 21, 30)";
    raw.execute_batch(blocks).unwrap();
    let after = |at| first_key_after(&raw, Millis(at)).unwrap();
    assert_eq!([4, 9, 20, 30].map(after), [0, 0, 2 * 4096, i64::MAX]);
    let before = |at| last_key_before(&raw, Millis(at)).unwrap();
    assert_eq!([31, 21, 9, 5].map(before), [3 * 4096 - 1, 2 * 4096 - 1, 2 * 4096 - 1, i64::MIN]);
}

#[test]
fn an_older_store_gets_the_times_and_the_columns_of_its_lists() {
    let folder = Folder::new();
    let raw = folder.older(30);
    raw.execute_batch(
        "INSERT INTO executions (key, id, net, trigger, inputs, created_at, tenant, workflow) \
         VALUES (1, x'01', x'', 'api', '{}', 7, 'fleet', 3), (5000, x'02', x'', 'api', '{}', 9, 'default', NULL);
         INSERT INTO heads (key, version, last, phase, held, at, due, goes_on, state) \
         VALUES (1, 4, 2, 10, 0, 8, NULL, 0, x'aa'), (5000, 1, 3, 2, 1, 9, 12, 1, x'bb')",
    )
    .unwrap();
    crate::sqlite::migrate::apply_next(&raw, 30).unwrap();
    let heads: Vec<String> = raw
        .prepare("SELECT concat_ws(' ', key, version, last, phase, held, at, due, goes_on, tenant, workflow, hex(state)) FROM heads")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(heads, ["1 4 2 10 0 8 0 fleet 3 AA", "5000 1 3 2 1 9 12 1 default BB"]);
    assert_eq!(first_key_after(&raw, Millis(7)).unwrap(), 4096);
    assert_eq!(last_key_before(&raw, Millis(9)).unwrap(), 4095);
}

#[test]
fn executions_of_one_span_share_its_note() {
    let folder = Folder::new();
    let mut store = folder.open();
    let raw = folder.raw();
    let created = [
        (12_345, (10_000, 19_999)),
        (19_999, (10_000, 19_999)),
        (10_000, (10_000, 19_999)),
        (9_999, (0, 19_999)),
        (20_000, (0, 29_999)),
    ];
    for (id, (at, note)) in (1..).zip(created) {
        let mut world = World { now: Millis(at), ..World::new(&circle()) };
        write(&mut store, [world.begin(Create::new(ExecutionId(id), json!({})))]);
        let found: Vec<(i64, i64)> = raw
            .prepare("SELECT earliest, latest FROM creation_times")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found, [note], "created at {at}");
    }
    assert_eq!([29_998, 29_999].map(|at| first_key_after(&raw, Millis(at)).unwrap()), [0, i64::MAX]);
    assert_eq!([1, 0].map(|at| last_key_before(&raw, Millis(at)).unwrap()), [4095, i64::MIN]);
}
