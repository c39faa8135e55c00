//! Statements for SQLite that reach beyond their database, or take what others need.

use crate::rig::{Place, files, until};
use crate::stage::Stage;
use serde_json::{Value, json};
use std::fs;

/// The server's own memory while strangers' statements run elsewhere. It is about 60 MiB at rest.
const PEAK_MIB: u64 = 400;

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS m FROM n";

fn statement(query: &str, more: Value) -> Value {
    let mut config = json!({ "query": query });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let step = json!({ "id": "a", "type": "data", "config": config, "retryPolicy": { "maxRetries": 0 } });
    json!({ "name": "attack", "nodes": [step], "edges": [] })
}

fn in_memory(query: &str) -> Value {
    statement(query, json!({ "tables": {} }))
}

fn in_file(query: &str) -> Value {
    statement(query, json!({ "database": "own.db" }))
}

#[test]
fn statements_that_reach_beyond_their_database_are_refused() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let pointer = "SELECT fts3_tokenizer('simple', x'4141414141414141')";
    for (query, what) in [
        (pointer, "fts3_tokenizer"),
        ("SELECT hex(fts3_tokenizer('simple')) AS address", "fts3_tokenizer"),
        ("SELECT load_extension('/lib/x86_64-linux-gnu/libm.so.6')", "load_extension"),
        ("PRAGMA temp_store_directory = '/tmp'", "temp_store_directory"),
        ("PRAGMA journal_mode = OFF", "journal_mode"),
        ("SELECT * FROM pragma_database_list", "database_list"),
        ("ATTACH '../default/own.db' AS other", "ATTACH"),
        ("VACUUM INTO '/tmp/windlass-stolen.db'", "VACUUM"),
        ("CREATE VIRTUAL TABLE f USING fts3(a, tokenize=simple)", "fts3"),
    ] {
        for definition in [in_memory(query), in_file(query)] {
            let (code, message) = stage.failure(&token, &definition);
            assert_eq!(code, "PERMISSION_DENIED", "{query}: {message}");
            assert!(message.contains(what) && message.contains("docs/nodes.md"), "{query}: {message}");
        }
    }
    // SQLite itself refuses it in a view.
    stage.ended(&token, &stage.start(&token, &in_file("CREATE VIEW v AS SELECT load_extension('x') AS e")));
    assert_eq!(stage.failure(&token, &in_file("SELECT * FROM v")).0, "DB_STATEMENT");
    assert_eq!(stage.failure(&token, &in_file("UPDATE sqlite_schema SET sql = ''")).0, "DB_STATEMENT");
    stage.bystander_step();
}

#[test]
fn names_that_sqlite_reads_more_into_are_refused() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let make = "CREATE TABLE IF NOT EXISTS t (n)";
    for name in [
        "own.db-wal",
        "own.db-SHM",
        "own.db-journal",
        "own.db-wal/x",
        ":memory:",
        "file:own.db?mode=ro",
        "../own.db",
        ".own",
    ] {
        let (code, message) = stage.failure(&token, &statement(make, json!({ "database": name })));
        assert_eq!(code, "INVALID_CONFIGURATION", "{name}: {message}");
        assert!(
            message.contains("the name in `database` of sql") && message.contains(name),
            "{name}: {message}"
        );
    }
    let folder = stage.place.data().join("databases");
    assert!(!folder.exists() || files(&folder).is_empty(), "{:?}", files(&folder));
    for name in ["own.db", "2026/orders v2.sqlite3"] {
        let id = stage.start(&token, &statement(make, json!({ "database": name })));
        assert_eq!(stage.ended(&token, &id)["status"], "completed");
    }
}

#[test]
fn statements_without_end_leave_others_alone_and_end_at_their_limit() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let endless: Vec<String> = (0..6).map(|_| stage.start(&token, &in_memory(ENDLESS))).collect();
    let child = until("a statement runs in a process of its own", || sandboxes(&stage).pop());
    assert_is_confined(child);
    for _ in 0..3 {
        println!("bystander {:?}, its step {:?}", stage.bystander(), stage.bystander_step());
    }
    let ended = stage.ended(&token, &endless[0]);
    let error = &ended["errors"][0];
    assert_eq!(error["code"], "LIMIT_EXCEEDED", "{ended}");
    assert!(error["message"].as_str().unwrap().contains("60 s"), "{error}");
    println!("peak {} MiB", stage.peak_mib());
    assert!(stage.peak_mib() < PEAK_MIB, "{} MiB", stage.peak_mib());
    let left = sandboxes(&stage);
    let stage = stage.restarted();
    until("statements end with their server", || left.iter().all(|pid| is_gone(*pid)).then_some(()));
    stage.bystander();
    stage.bystander_step();
}

#[test]
fn statements_that_want_all_memory_fail_alone() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)";
    for query in [
        "SELECT length(zeroblob(2000000000)) AS n".to_owned(),
        format!("CREATE TABLE t AS {rows} SELECT randomblob(10000) AS b FROM n"),
        format!("{rows} SELECT group_concat(hex(randomblob(1000))) AS c FROM n"),
        format!("{rows} SELECT i, randomblob(10000) AS b FROM n ORDER BY b"),
        format!(
            "{rows} SELECT i AS a FROM n, (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
        ),
    ] {
        let (code, message) = stage.failure(&token, &in_memory(&query));
        let expected = ["LIMIT_EXCEEDED", "RESULT_TOO_LARGE", "DB_STATEMENT"];
        assert!(expected.contains(&code.as_str()), "{query}: {code}: {message}");
    }
    println!("peak {} MiB", stage.peak_mib());
    assert!(stage.peak_mib() < PEAK_MIB, "{} MiB", stage.peak_mib());
    let stage = stage.restarted();
    stage.bystander_step();
}

#[test]
fn a_tenants_databases_have_a_bound_on_disk() {
    let place = Place::new().with(&["--database-bytes", "2MiB", "--tenant-database-bytes", "5MiB"]);
    let stage = Stage::at(place);
    let token = stage.token("developer");
    let grow = |name: &str| {
        let rows =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT randomblob(5000) FROM n";
        statement(&format!("INSERT INTO t {rows}"), json!({ "database": name }))
    };
    let fill = |name: &str| {
        let make = statement("CREATE TABLE t (b)", json!({ "database": name }));
        stage.ended(&token, &stage.start(&token, &make));
        let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 350)";
        let insert = statement(
            &format!("INSERT INTO t {rows} SELECT randomblob(5000) FROM n"),
            json!({ "database": name }),
        );
        stage.ended(&token, &stage.start(&token, &insert))["status"].clone()
    };
    assert_eq!(fill("a.db"), "completed");
    let (code, message) = stage.failure(&token, &grow("a.db"));
    assert_eq!(code, "LIMIT_EXCEEDED", "{message}");
    assert!(message.contains("2 MiB") && message.contains("`database-bytes`"), "{message}");
    assert_eq!(fill("deep/b.db"), "completed");
    assert_eq!(fill("c.db"), "failed", "all databases of the tenant have a bound together");
    let folder = stage.place.data().join("databases").join(&stage.tenant);
    let bytes: u64 = files(&folder).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes <= 5 << 20, "{bytes}");
    // Deleted rows make room again.
    let delete = statement("DELETE FROM t", json!({ "database": "a.db" }));
    assert_eq!(stage.ended(&token, &stage.start(&token, &delete))["status"], "completed");
    assert_eq!(fill("c.db"), "completed");
    let stage = stage.restarted();
    stage.bystander_step();
}

/// Processes that compute for the server.
fn sandboxes(stage: &Stage) -> Vec<u32> {
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let parent = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = parent.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        words.ends_with(b"\0sandbox\0") && parent == Some(stage.server.process())
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_one).collect()
}

fn is_gone(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    !words.ends_with(b"\0sandbox\0")
}

/// Checks that the process has nothing of the server: no variables, no files, no unlimited memory.
fn assert_is_confined(pid: u32) {
    let of = |file: &str| format!("/proc/{pid}/{file}");
    let variables = String::from_utf8(fs::read(of("environ")).unwrap()).unwrap();
    assert!(!variables.contains("WINDLASS") && !variables.contains("PATH"), "{variables}");
    until("its limits hold", || {
        let limits = fs::read_to_string(of("limits")).unwrap();
        let of = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        let names = ["Max address space", "Max cpu time", "Max file size", "Max open files", "Max processes"];
        names.iter().all(|name| !of(name).contains("unlimited")).then_some(())
    });
    let open: Vec<String> = fs::read_dir(of("fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    assert!(open.iter().all(|link| link.starts_with("pipe:") || link == "/dev/null"), "{open:?}");
}
