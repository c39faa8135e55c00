//! Lists are read along an index: what they cost does not grow with what is stored.

use super::Folder;
use crate::sqlite::{due, executions, lists};
use crate::{Query, Tenant, WorkflowId};
use windlass_kernel::ExecutionId;

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
        lists::LOGS,
        due::HEADS_DUE,
        due::RUNS_DUE,
        due::GATES_DUE,
    ] {
        check(sql);
    }
}

#[test]
fn no_list_of_executions_reads_a_whole_table() {
    let folder = Folder::new();
    drop(folder.open());
    let raw = folder.raw();
    let of_tenant = Query { tenant: Some(Tenant::default()), limit: 9, ..Query::default() };
    let queries = [
        Query::default(),
        of_tenant.clone(),
        Query { workflow: Some(WorkflowId(1)), ..of_tenant.clone() },
        Query { tag: Some("a".to_owned()), ..of_tenant.clone() },
        Query { correlation: Some("a".to_owned()), ..of_tenant.clone() },
        Query { parent: Some(ExecutionId(1)), ..of_tenant },
    ];
    for query in queries {
        for phase in [None, Some(3)] {
            check(&executions::statement(&raw, &query, phase).unwrap().0);
        }
    }
}
