//! Tests of the check: it finds changes that were made to a store directly, with their place, and continues.

use super::{Folder, worlds, write};
use crate::check::{Problem, Report, check};
use crate::commit::{Applied, Letter, Mail, Write};
use crate::conformance::world::{World, chain};
use crate::entry::Entry;
use crate::origin::Webhook;
use crate::outbox::{NewDeliveries, NewDelivery};
use crate::sqlite::Sqlite;
use crate::store::Store as _;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Input, Millis};

fn checked(folder: &Folder) -> Report {
    let mut calls = 0;
    let report = check(&mut Sqlite::read_only(&folder.path()).unwrap(), &mut |_| calls += 1).unwrap();
    assert!(calls > 0, "progress is reported");
    report
}

fn store() -> Folder {
    let folder = Folder::new();
    let mut store = folder.open();
    let worlds = worlds(&mut store);
    store.write(&[Write::Lease(worlds[0].lease(1))]).unwrap();
    drop(store);
    folder
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn a_sound_store_has_no_problems() {
    let report = checked(&store());
    assert!(report.is_sound(), "{}", listed(&report.problems));
    assert_eq!((report.executions, report.journal_rows, report.more), (3, 12, 0));
    assert!(report.records > 12, "{report:?}");
}

/// Changes the second execution: only it is reported, as `expected` states, and the others are still checked.
fn finds(sql: &str, expected: &[&str]) {
    let folder = store().copy();
    let changed = folder.raw().execute_batch(sql);
    assert!(changed.is_ok(), "{sql}: {changed:?}");
    let report = checked(&folder);
    let found = listed(&report.problems);
    for words in expected {
        assert!(found.contains(words), "{sql}: `{words}` is missing in:\n{found}");
    }
    assert_eq!(report.executions, 3, "{sql}");
    for other in [1, 3] {
        assert!(
            !found.contains(&ExecutionId(other).to_string()),
            "{sql}: another execution is reported:\n{found}"
        );
    }
}

#[test]
fn changed_journal_rows_are_found_with_their_position() {
    let second = "execution 00000000000000000000000000000002";
    let damaged = [second, "version 0, journal: its checksum does not fit its bytes"];
    finds(
        "UPDATE journal SET records = CAST(replace(records, 'order', 'ordeR') AS BLOB) WHERE execution = 2 AND version = 0",
        &damaged,
    );
    finds("UPDATE journal SET checksum = checksum + 1 WHERE execution = 2 AND version = 0", &damaged);
    finds("UPDATE journal SET commit_id = randomblob(16) WHERE execution = 2 AND version = 0", &damaged);
    finds("UPDATE journal SET format = 9 WHERE execution = 2 AND version = 0", &[second, "it has format 9"]);
    finds(
        "UPDATE journal SET version = version + 1 WHERE execution = 2 AND version > 0",
        &[second, "journal: its checksum does not fit its bytes"],
    );
    finds(
        "UPDATE journal SET records = x'' WHERE execution = 2 AND position = (SELECT last FROM heads WHERE key = 2)",
        &[second, "journal: its checksum does not fit its bytes"],
    );
}

#[test]
fn missing_and_moved_journal_rows_are_found() {
    let second = "execution 00000000000000000000000000000002";
    finds("DELETE FROM journal WHERE execution = 2 AND version = 0", &[second, "missing"]);
    finds(
        "DELETE FROM journal WHERE position = (SELECT last FROM heads WHERE key = 2)",
        &[second, "missing"],
    );
    finds(
        "DELETE FROM journal WHERE position = (SELECT last - 1 FROM heads WHERE key = 2)",
        &[second, "missing"],
    );
    finds("DELETE FROM journal WHERE execution = 2", &[second, "missing"]);
    finds(
        "UPDATE journal SET before = NULL WHERE execution = 2",
        &[second, "do not lead back to the first one"],
    );
    finds(
        "INSERT INTO journal (execution, version, before, commit_id, format, checksum, records) \
         SELECT execution, version, before, commit_id, format, checksum, records FROM journal \
         WHERE execution = 2 AND version > 0 ORDER BY position LIMIT 1",
        &[second, "a second row for this version"],
    );
    finds(
        "UPDATE heads SET last = (SELECT before FROM journal WHERE position = heads.last) WHERE key = 2",
        &[second, "its version is beyond the end of its journal"],
    );
}

#[test]
fn a_row_swapped_between_executions_is_found() {
    let folder = store().copy();
    let raw = folder.raw();
    raw.execute_batch(
        "UPDATE journal SET execution = CASE execution WHEN 1 THEN 2 ELSE 1 END WHERE execution IN (1, 2) \
         AND version = (SELECT version FROM journal WHERE position = (SELECT last FROM heads WHERE key = 1))",
    )
    .unwrap();
    drop(raw);
    let report = checked(&folder);
    let wrong = report.problems.iter().filter(|problem| problem.what.contains("checksum"));
    assert_eq!(wrong.count(), 2, "{}", listed(&report.problems));
}

#[test]
fn rows_that_do_not_follow_from_the_journal_are_found() {
    let second = "execution 00000000000000000000000000000002";
    for column in ["version", "phase", "at", "due"] {
        let says = format!("heads: `{column}` is not what the journal says");
        let sql = format!("UPDATE heads SET {column} = {column} - 1 WHERE key = 2");
        finds(&sql, &[second, &says]);
    }
    for column in ["held", "goes_on"] {
        let says = format!("heads: `{column}` is not what the journal says");
        finds(&format!("UPDATE heads SET {column} = 1 - {column} WHERE key = 2"), &[second, &says]);
    }
    let cases = [
        ("UPDATE heads SET version = version + 1 WHERE key = 2", "beyond the end of its journal"),
        ("UPDATE heads SET state = x'90' WHERE key = 2", "heads: `state` is not what the journal says"),
        ("DELETE FROM contexts WHERE key = 2", "contexts: it is not the one of the journal"),
        ("DELETE FROM step_runs WHERE execution = 2", "step_runs: step-run 4294967298 is missing"),
        ("UPDATE step_runs SET due = due + 1 WHERE execution = 2", "is not what the journal says"),
        ("UPDATE step_runs SET run = run + 9 WHERE execution = 2", "must not be there"),
        (
            "UPDATE step_runs SET state = x'00' WHERE execution = 2",
            "step_runs: step-run 4294967298 is not what",
        ),
        ("DELETE FROM parts WHERE execution = 2 AND part = 3", "parts: part join x'"),
        ("UPDATE parts SET value = x'00' WHERE execution = 2", "is not what the journal says"),
        ("DELETE FROM facts WHERE execution = 2", "facts: step-run 4294967296 at position "),
        ("UPDATE facts SET position = position - 1 WHERE execution = 2", "must not be there"),
        ("UPDATE executions SET inputs = '{}' WHERE key = 2", "executions: its inputs are not those"),
        ("UPDATE executions SET inputs = '{' WHERE key = 2", "executions: "),
        ("UPDATE executions SET net = zeroblob(32) WHERE key = 2", "nets: its net is not in the store"),
        ("UPDATE executions SET definition = 77 WHERE key = 2", "has a definition that is not there"),
        ("DELETE FROM heads WHERE key = 2", "executions: row 2 has no head"),
        ("UPDATE step_runs SET session = 1 WHERE class = 3 AND execution = 2", "without an open offer"),
    ];
    for (sql, says) in cases {
        finds(sql, &[second, says]);
    }
}

#[test]
fn rows_of_no_execution_are_found() {
    let folder = store().copy();
    folder
        .raw()
        .execute_batch(
            "INSERT INTO stops VALUES (2, 5, 5, 5); \
             INSERT INTO logs (execution, run, step, attempt, at, lines) VALUES (2, 1, 's', 1, 1, x'5b5d'); \
             DELETE FROM executions WHERE key = 2",
        )
        .unwrap();
    let report = checked(&folder);
    assert_eq!(report.executions, 2);
    for table in ["journal", "heads", "contexts", "step_runs", "parts", "facts", "stops", "logs"] {
        let found = report
            .problems
            .iter()
            .any(|problem| problem.table == table && problem.what.contains("belongs to no execution"));
        assert!(found, "{table} in\n{}", listed(&report.problems));
    }
}

#[test]
fn mail_for_no_execution_is_found() {
    let folder = store();
    let mut store = folder.open();
    let mail = |to: u128, letter| Mail { to: ExecutionId(to), letter, answered: false, at: Millis(1) };
    let create = Box::new(Create::new(ExecutionId(8), serde_json::json!({})));
    let (tenant, options) = (crate::Tenant::default(), Arc::default());
    let start = Letter::Start { definition: Arc::new(serde_json::json!(1)), create, tenant, options };
    let input = || Letter::Input(Input::Begin);
    let batch = [mail(1, input()), mail(8, start), mail(8, input()), mail(9, input())];
    store.write(&batch.map(Write::Accept)).unwrap();
    drop(store);
    let report = checked(&folder);
    let to: Vec<_> = report.problems.iter().map(|problem| (problem.table, problem.execution)).collect();
    assert_eq!(to, [("inbox", Some(ExecutionId(9)))]);
}

#[test]
fn a_store_is_checked_while_it_is_written() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut worlds = worlds(&mut store);
    let mut reader = store.reader().unwrap();
    let mut left = 40;
    let mut written = |_: &Report| {
        for world in &mut worlds {
            if left > 0 && !world.open().is_empty() {
                left -= 1;
                write(&mut store, [world.done(serde_json::json!(left))]);
            }
        }
    };
    let report = check(&mut reader, &mut written).unwrap();
    assert!(report.is_sound(), "{}", listed(&report.problems));
}

#[test]
fn a_pending_delivery_to_a_receiver_that_was_given_up_is_found() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut created = World::create(&chain(1), 1).1;
    let webhook = Some(Webhook { url: "https://example.org/".to_owned(), events: Vec::new() });
    Arc::make_mut(&mut created.creation.as_mut().unwrap().origin).options.webhook = webhook;
    write(&mut store, [created]);
    let event = "node.started".to_owned();
    let made =
        [1, 2].map(|number| NewDelivery { number, message: 1, event: event.clone(), body: String::new() });
    let (execution, at) = (ExecutionId(1), Millis(8));
    let new = NewDeliveries { execution, seen: 9, made: made.to_vec(), at };
    let give_up = Entry::GivenUp { execution, why: "enough".to_owned(), at };
    let entries = [Entry::Deliveries(Box::new(new)), give_up].map(|entry| Write::Entry(Box::new(entry)));
    assert_eq!(store.write(&entries).unwrap(), [Applied::Done; 2]);
    let is_told = || {
        let report = check(&mut store.reader().unwrap(), &mut |_| {}).unwrap();
        report.problems.iter().any(|problem| problem.what == "row 2 waits for a receiver that is given up")
    };
    assert!(!is_told());
    folder.raw().execute_batch("UPDATE deliveries SET state = 'pending' WHERE number = 2").unwrap();
    assert!(is_told());
}
