//! Lists are read along an index: what they cost does not grow with what is stored.

use super::Folder;
use crate::sqlite::{due, lists};

fn check(sql: &str) {
    let folder = Folder::new();
    drop(folder.open());
    let raw = folder.raw();
    let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let none =
        rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, statement.parameter_count()));
    let plan: Vec<String> =
        statement.query_map(none, |row| row.get::<_, String>(3)).unwrap().map(Result::unwrap).collect();
    let all = plan.join("\n");
    assert!(!all.contains("SCAN") && !all.contains("TEMP B-TREE"), "{sql}\n{all}");
    assert!(all.contains("SEARCH"), "{sql}\n{all}");
}

#[test]
fn no_list_reads_a_whole_table() {
    for sql in [
        lists::OFFERS,
        lists::UNFINISHED,
        lists::STOPS,
        lists::INBOX,
        lists::NEWEST,
        lists::NEWEST_OF_PHASE,
        lists::LOGS,
        due::HEADS_DUE,
        due::RUNS_DUE,
        due::GATES_DUE,
    ] {
        check(sql);
    }
}
