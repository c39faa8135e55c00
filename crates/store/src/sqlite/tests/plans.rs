//! Lists are read along an index: what they cost does not grow with what is stored.

use super::Folder;
use crate::sqlite::{
    chain, connect, executions, lists, mail, objects, registry, schedule_runs, schedules, tasks, timers,
};
use crate::{Query, Status, Tenant, WorkflowId};
use rusqlite::{Connection, StatementStatus};
use windlass_kernel::{ExecutionId, Millis, Phase};

fn check(sql: &str) {
    let folder = Folder::new();
    drop(folder.open());
    is_prepared_once(&connect::open_reader(&folder.path()).unwrap(), sql);
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

/// Preparing costs many times what a search along an index does.
fn is_prepared_once(conn: &Connection, sql: &str) {
    let mut statement = conn.prepare(sql).unwrap();
    for value in 0..3 {
        let values = rusqlite::params_from_iter(std::iter::repeat_n(value, statement.parameter_count()));
        let mut rows = statement.query(values).unwrap();
        while rows.next().unwrap().is_some() {}
    }
    assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
}

#[test]
fn no_list_reads_a_whole_table() {
    for sql in [
        lists::OFFERS,
        lists::OFFERS_OF,
        tasks::TASKS,
        tasks::GATES,
        tasks::HELD,
        registry::AWAITED,
        objects::NEXT_TENANT,
        objects::DUE,
        objects::AWAITED,
        lists::UNFINISHED,
        lists::STOPS,
        mail::INBOX,
        lists::LOGS,
        lists::LOGS_BEFORE,
        lists::RUN_LOGS,
        chain::MARK_AT,
        chain::MARK_AFTER,
        timers::HEADS_DUE,
        timers::RUNS_DUE,
        timers::GATES_DUE,
        schedules::DUE,
        schedules::DUE_LATEST,
        &schedules::waiting_query(),
        schedule_runs::PRUNABLE,
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
        Query { parent: Some(ExecutionId(1)), ..of_tenant.clone() },
        Query { workflow: Some(WorkflowId(1)), tag: Some("a".to_owned()), ..of_tenant.clone() },
        Query { since: Some(Millis(1)), until: Some(Millis(2)), ..of_tenant.clone() },
        Query { since: Some(Millis(1)), workflow: Some(WorkflowId(1)), ..of_tenant },
    ];
    let statuses = [None, Some(Status::Phase(Phase::Running))];
    for query in queries.iter().flat_map(|query| statuses.map(|status| Query { status, ..query.clone() })) {
        for phase in executions::phases(&query) {
            let by_phase = query.tag.is_some() && phase.is_some();
            let sql = executions::statement(&raw, &query, phase).unwrap().0;
            // Another index would lead to executions of all phases.
            assert_eq!(sql.contains("t.phase = "), by_phase, "{sql}");
            assert_eq!(sql.contains("INDEXED BY tags_listed"), by_phase, "{sql}");
            check(&sql);
        }
    }
}
