//! postgres tasks against a real server.

use crate::cluster::cluster;
use crate::engine::{Finished, Shop, UNIT, pipeline};
use serde_json::{Value, json};
use windlass_protocol::{Failure, Order, Outcome, Work};
use windlass_worker::egress::Egress;

/// Fields laid over the place of the tests' server.
fn task(fields: Value) -> Value {
    let mut config = cluster().place();
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "label": "db", "kind": "postgres", "config": config })
}

fn work(fields: Value) -> Work {
    pipeline(json!({ "tasks": [task(fields)] }))
}

fn run(fields: Value) -> Finished {
    Shop::open().run(work(fields))
}

fn output(fields: Value) -> Value {
    run(fields).output().clone()
}

fn failure(fields: Value) -> Failure {
    run(fields).failure().clone()
}

#[test]
fn one_statement_is_read_in_both_spellings_and_several_by_number() {
    let one =
        json!({ "status": "success", "rows": [{ "a": 1, "b": "x" }], "row_count": 1, "columns": ["a", "b"] });
    let mut both = one.clone();
    both["command_0"] = one;
    assert_eq!(output(json!({ "query": "SELECT 1 AS a, 'x' AS b" })), both);
    let several = output(json!({ "command": "
        CREATE TEMP TABLE t (n int);   -- a; comment
        INSERT INTO t VALUES (1), (2), (3);
        UPDATE t SET n = n + 1 WHERE n > 1 RETURNING n;
        SELECT ';' AS semicolon FROM t WHERE n > 100;" }));
    let none = json!([]);
    let command = |rows: Value, row_count: u32, columns: Value| json!({ "status": "success", "rows": rows, "row_count": row_count, "columns": columns });
    assert_eq!(
        several,
        json!({
            "command_0": command(none.clone(), 0, none.clone()),
            "command_1": command(none.clone(), 3, none.clone()),
            "command_2": command(json!([{ "n": 3 }, { "n": 4 }]), 2, json!(["n"])),
            "command_3": command(none, 0, json!(["semicolon"])),
        })
    );
}

#[test]
fn every_common_type_is_json_without_loss() {
    let check = |expression: &str, expected: Value| {
        let rows = output(json!({ "query": format!("SELECT {expression} AS v") }))["rows"].clone();
        assert_eq!(rows, json!([{ "v": expected }]), "{expression}");
    };
    let columns = [
        ("true", json!(true)),
        ("1::int2", json!(1)),
        ("(-2147483648)::int4", json!(-2_147_483_648_i64)),
        ("9223372036854775807::int8", json!(i64::MAX)),
        ("4294967295::oid", json!(u32::MAX)),
        ("1.1::float4", json!(1.1)),
        ("1e300::float8", json!(1e300)),
        ("'NaN'::float8", json!("NaN")),
        ("'-Infinity'::float4", json!("-Infinity")),
        ("0::numeric", json!(0)),
        ("-12345678::numeric", json!(-12_345_678)),
        ("10000::numeric", json!(10_000)),
        ("10.50::numeric(10,2)", json!(10.5)),
        ("0.00001234::numeric", json!(0.000_012_34)),
        ("-0.5::numeric", json!(-0.5)),
        ("123456789012345678901234567890.000100::numeric", json!("123456789012345678901234567890.000100")),
        ("'NaN'::numeric", json!("NaN")),
        ("'Infinity'::numeric", json!("Infinity")),
        ("'ä'::text", json!("ä")),
        ("'ab'::char(4)", json!("ab  ")),
        ("'n'::name", json!("n")),
        ("'<a/>'::xml", json!("<a/>")),
        ("'{\"a\": [1, null]}'::json", json!({ "a": [1, null] })),
        ("'{\"a\": 9007199254740993}'::jsonb", json!({ "a": 9_007_199_254_740_993_i64 })),
        ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("'\\xff00'::bytea", json!("/wA=")),
        ("'2024-02-29'::date", json!("2024-02-29")),
        ("'1999-12-31'::date", json!("1999-12-31")),
        ("'infinity'::date", json!("infinity")),
        ("'23:59:59.5'::time", json!("23:59:59.5")),
        ("'2024-02-29 01:02:03.000004+02'::timestamptz", json!("2024-02-28T23:02:03.000004Z")),
        ("'2024-02-29 01:02:03'::timestamp", json!("2024-02-29T01:02:03")),
        ("'-infinity'::timestamptz", json!("-infinity")),
        ("'1 year 2 months 3 days 04:05:06.7'::interval", json!("P1Y2M3DT14706.7S")),
        ("'-1 second'::interval", json!("PT-1S")),
        ("'0'::interval", json!("PT0S")),
        ("'10.0.0.1'::inet", json!("10.0.0.1")),
        ("'10.0.0.0/8'::cidr", json!("10.0.0.0/8")),
        ("'::1/64'::inet", json!("::1/64")),
        ("'{1,NULL,3}'::int[]", json!([1, null, 3])),
        ("'{}'::text[]", json!([])),
        ("ARRAY[[1,2],[3,4]]::int8[]", json!([[1, 2], [3, 4]])),
        ("ARRAY['a,b', '\"q\"']", json!(["a,b", "\"q\""])),
        ("NULL::int", Value::Null),
        ("pg_sleep(0)", Value::Null),
    ];
    // One statement for all of them; then each that differs by itself.
    let list: Vec<String> =
        columns.iter().enumerate().map(|(index, (text, _))| format!("{text} AS c{index}")).collect();
    let all = output(json!({ "query": format!("SELECT {}", list.join(", ")) }));
    for (index, (text, expected)) in columns.iter().enumerate() {
        assert_eq!(all["rows"][0][format!("c{index}")], *expected, "{text}");
    }
    check("count(*)", json!(1));
    check("(SELECT sum(n) FROM (VALUES (1::int8), (2)) AS t(n))", json!(3));
}

#[test]
fn types_of_ones_own_are_read_and_others_are_to_be_cast() {
    let made = "CREATE SCHEMA IF NOT EXISTS made; SET search_path = made;
        CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN small AS int CHECK (VALUE < 10);
        SELECT 'happy'::mood AS a, 3::small AS b, ARRAY['sad'::mood] AS c; DROP SCHEMA made CASCADE";
    let finished = output(json!({ "command": made }));
    assert_eq!(finished["command_4"]["rows"], json!([{ "a": "happy", "b": 3, "c": ["sad"] }]));
    let failed = failure(json!({ "query": "SELECT point(1, 2) AS spot" }));
    assert_eq!(
        (failed.code.as_str(), failed.message.as_str()),
        (
            "INVALID_CONFIGURATION",
            "the column `spot` has a `point` that has no form in JSON here; cast it to text: spot::text"
        )
    );
    assert_eq!(output(json!({ "query": "SELECT point(1, 2)::text AS spot" }))["rows"][0]["spot"], "(1,2)");
    let failed = failure(json!({ "query": "SELECT 1 AS id, 2 AS id" }));
    assert_eq!(failed.message, "two columns have the name `id`; rename one with AS");
}

#[test]
fn params_have_the_types_of_the_statement() {
    let hostile = "'; DROP TABLE x; --\\\"{}";
    let params = json!([1, i64::MAX, 1.5, "12.340", true, hostile, null, { "a": [hostile] }, [1, null, 3], ["a,b", hostile, null], "2024-02-29T00:00:00Z", [[1, 2], [3, 4]], { "k": 1 }]);
    let query = "SELECT $1::int2 AS a, $2::int8 AS b, $3::float8 AS c, $4::numeric AS d, $5::bool AS e, $6::text AS f, $7::int AS g,
        $8::jsonb AS h, $9::int[] AS i, $10::text[] AS j, $11::timestamptz AS k, $12::int[] AS l, $13::text AS m";
    let row = output(json!({ "query": query, "params": params }))["rows"][0].clone();
    let expected = json!({
        "a": 1, "b": i64::MAX, "c": 1.5, "d": 12.34, "e": true, "f": hostile, "g": null, "h": { "a": [hostile] },
        "i": [1, null, 3], "j": ["a,b", hostile, null], "k": "2024-02-29T00:00:00Z", "l": [[1, 2], [3, 4]], "m": "{\"k\":1}",
    });
    assert_eq!(row, expected);
    let finished = output(json!({ "commands": [
        "CREATE TEMP TABLE t (n int, s text)",
        { "command": "INSERT INTO t VALUES ($1, $2)", "params": [7, "seven"] },
        "SELECT * FROM t",
    ] }));
    assert_eq!(finished["command_2"]["rows"], json!([{ "n": 7, "s": "seven" }]));
    let failed = failure(json!({ "query": "SELECT $1::int AS a", "params": [1, 2] }));
    assert_eq!(failed.message, "the statement takes 1 params, and there are 2");
    let failed = failure(json!({ "query": "SELECT $1::int AS a", "params": [{ "a": 1 }] }));
    assert!(failed.message.contains("a list or a map cannot be a `int4`"), "{}", failed.message);
    let failed = failure(json!({ "query": "SELECT $1::int AS a", "params": ["seven"] }));
    assert!(
        failed.message.contains("invalid input syntax for type integer") && failed.code == "DB_STATEMENT",
        "{failed:?}"
    );
}

#[test]
fn errors_have_state_and_kind() {
    let sees = |fields: Value, when: &str| {
        let mut task = task(fields);
        task["rules"] =
            json!([{ "when": when, "action": { "do": "break" } }, { "action": { "do": "fail" } }]);
        let finished = Shop::open().run(pipeline(json!({ "tasks": [task] })));
        assert!(matches!(finished.outcome, Outcome::Done { .. }), "{when}: {:?}", finished.outcome);
    };
    let twice = "CREATE TEMP TABLE t (n int CONSTRAINT only_one PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)";
    sees(
        json!({ "command": twice }),
        "outcome.pg.code == '23505' and outcome.pg.sqlstate == '23505' and outcome.error.pg_code == '23505'",
    );
    sees(
        json!({ "command": twice }),
        "outcome.error.code == 'DB_CONSTRAINT' and not outcome.error.retryable and outcome.error.source == 'postgres'",
    );
    sees(
        json!({ "command": twice }),
        "outcome.error.details.constraint == 'only_one' and outcome.error.details.command == 'command_2'",
    );
    sees(
        json!({ "command": "SET statement_timeout = 20; SELECT pg_sleep(60)" }),
        "outcome.error.code == 'DB_TIMEOUT' and outcome.error.retryable and outcome.pg.code == '57014'",
    );
    sees(
        json!({ "command": "SELEC 1" }),
        "outcome.error.code == 'DB_SYNTAX' and outcome.error.details.position == '1'",
    );
    sees(
        json!({ "command": "SELECT * FROM nowhere" }),
        "outcome.error.code == 'DB_STATEMENT' and outcome.pg.code == '42P01'",
    );
    sees(
        json!({ "command": "SELECT 1/0 AS x" }),
        "outcome.error.code == 'DB_STATEMENT' and outcome.pg.code == '22012'",
    );
    sees(
        json!({ "command": "SELECT pg_terminate_backend(pg_backend_pid())" }),
        "outcome.error.code == 'DB_CONNECTION' and outcome.error.retryable",
    );
    sees(
        json!({ "command": "SELECT 1", "database": "nowhere" }),
        "outcome.pg.code == '3D000' and not outcome.error.retryable",
    );
    sees(
        json!({ "command": "SELECT 1", "user": "keyed", "password": "wrong" }),
        "outcome.error.kind == 'auth' and outcome.pg.code == '28P01'",
    );
    sees(
        json!({ "command": "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$" }),
        "outcome.error.code == 'DB_DEADLOCK' and outcome.error.retryable",
    );
    sees(
        json!({ "command": "SELECT 1", "port": 1 }),
        "outcome.error.code == 'CONNECTION_REFUSED' and outcome.error.retryable and not outcome.pg",
    );
    let failed = failure(json!({ "command": twice }));
    assert_eq!(
        failed.message,
        "command_2: postgres reported: duplicate key value violates unique constraint \"only_one\" (23505)"
    );
}

#[test]
fn two_transactions_that_wait_for_each_other_are_a_deadlock() {
    let made = "CREATE TABLE IF NOT EXISTS both_wait (id int PRIMARY KEY, n int); INSERT INTO both_wait VALUES (1, 0), (2, 0) ON CONFLICT DO NOTHING";
    output(json!({ "command": made }));
    // Each locks its own row, says so with a lock that the other waits for, and then wants the other's row.
    let half = |own: u32, other: u32| {
        work(json!({ "command": format!(
            "BEGIN; UPDATE both_wait SET n = n + 1 WHERE id = {own}; SELECT pg_advisory_lock({own});
             DO $$ BEGIN WHILE (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid IN (1, 2) AND granted) < 2 LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
             UPDATE both_wait SET n = n + 1 WHERE id = {other}; COMMIT"
        ) }))
    };
    let other = std::thread::spawn(move || Shop::open().run(half(2, 1)).outcome);
    let outcomes = [Shop::open().run(half(1, 2)).outcome, other.join().unwrap()];
    let lost: Vec<&Failure> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 1, "one of them continues: {outcomes:?}");
    assert_eq!((lost[0].code.as_str(), lost[0].details["sqlstate"].as_str()), ("DB_DEADLOCK", Some("40P01")));
}

#[test]
fn each_statement_stays_done_unless_a_transaction_is_begun() {
    let table = "DROP TABLE IF EXISTS kept; CREATE TABLE kept (n int)";
    let left = |statements: &str| {
        output(json!({ "command": table }));
        failure(json!({ "command": statements }));
        output(json!({ "command": "SELECT n FROM kept" }))["row_count"].clone()
    };
    assert_eq!(left("INSERT INTO kept VALUES (1); SELECT 1/0 AS x; INSERT INTO kept VALUES (2)"), 1);
    assert_eq!(left("BEGIN; INSERT INTO kept VALUES (1); SELECT 1/0 AS x; COMMIT"), 0);
}

#[test]
fn a_server_address_is_accepted_in_every_form() {
    let cluster = cluster();
    let who = "SELECT current_user::text AS who, current_database()::text AS db, current_setting('search_path') AS path";
    let check = |config: Value, who_expected: &str, db: &str| {
        let mut config = config;
        config["command"] = json!(who);
        let task = json!({ "label": "db", "kind": "postgres", "config": config });
        let finished = Shop::open().run(pipeline(json!({ "tasks": [task] })));
        let row = &finished.output()["rows"][0];
        assert_eq!((&row["who"], &row["db"]), (&json!(who_expected), &json!(db)), "{config}");
        row["path"].as_str().unwrap().to_owned()
    };
    let port = cluster.port;
    check(
        json!({ "host": cluster.sockets, "port": port.to_string(), "user": "postgres" }),
        "postgres",
        "postgres",
    );
    check(
        json!({ "auth": { "host": "127.0.0.1", "port": port, "username": "keyed", "password": "s3cret", "database": "other" } }),
        "keyed",
        "other",
    );
    check(
        json!({ "credential": { "type": "postgres", "data": { "db_host": "127.0.0.1", "db_port": port, "db_user": "keyed", "db_password": "s3cret", "db_name": "postgres" } }, "database": "other" }),
        "keyed",
        "other",
    );
    check(
        json!({ "connection_string": format!("postgres://keyed:s3cret@127.0.0.1:{port}/other") }),
        "keyed",
        "other",
    );
    check(
        json!({ "dsn": format!("host=127.0.0.1 port={port} user=postgres"), "database": "other" }),
        "postgres",
        "other",
    );
    let path = check(
        json!({ "host": "127.0.0.1", "port": port, "user": "postgres", "schema": "odd\"name, public" }),
        "postgres",
        "postgres",
    );
    assert_eq!(path, "\"odd\"\"name\", \"public\"");
}

#[test]
fn the_connection_is_sealed_as_asked() {
    let is_sealed = |mode: &str, user: &str| {
        let finished = run(
            json!({ "command": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", "sslmode": mode, "user": user }),
        );
        match &finished.outcome {
            Outcome::Done { output } => Ok(output["rows"][0]["ssl"].as_bool().unwrap()),
            Outcome::Failed(failure) => Err(Box::new(failure.clone())),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(is_sealed("prefer", "postgres"), Ok(true));
    assert_eq!(is_sealed("require", "sealed"), Ok(true));
    assert_eq!(is_sealed("disable", "postgres"), Ok(false));
    assert_eq!(is_sealed("disable", "sealed").unwrap_err().code, "AUTHENTICATION_FAILED");
    let failed = is_sealed("verify-full", "postgres").unwrap_err();
    assert!(
        failed.code == "DB_CONNECTION" && failed.message.contains("certificate"),
        "no authority signed it: {failed:?}"
    );
    let failed = is_sealed("sometimes", "postgres").unwrap_err();
    assert_eq!(
        failed.message,
        "`sslmode` of postgres is disable, prefer, require or verify-full, not `sometimes`"
    );
}

/// Asks until the server says so: what was stopped here must stop there.
fn until_running(name: &str, expected: u64) {
    let began = std::time::Instant::now();
    loop {
        let query = "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()";
        let finished = output(json!({ "query": query, "params": [name] }));
        if finished["rows"][0]["n"] == expected {
            return;
        }
        assert!(began.elapsed() < crate::engine::PATIENCE, "{name}: {finished}");
    }
}

#[test]
fn a_statement_that_takes_too_long_is_cancelled_in_the_server() {
    let failed =
        failure(json!({ "command": "SELECT pg_sleep(3600) /* slow one */", "timeout_seconds": 0.5 }));
    assert_eq!((failed.class.name(), failed.code.as_str()), ("timeout", "NETWORK_TIMEOUT"));
    until_running("slow one", 0);
}

#[test]
fn a_stopped_statement_is_cancelled_in_the_server() {
    for mode in ["disable", "require"] {
        let name = format!("stopped {mode}");
        let shop = Shop::open();
        let slow = work(json!({ "command": format!("SELECT pg_sleep(3600) /* {name} */"), "sslmode": mode }));
        shop.order(Order::Run(Box::new(slow)));
        until_running(&name, 1);
        shop.order(Order::Stop { unit: UNIT, grace_ms: 60_000 });
        assert_eq!(shop.finished().outcome, Outcome::Stopped);
        until_running(&name, 0);
    }
}

#[test]
fn rows_that_are_too_large_are_not_held() {
    let rows = |max: u64| {
        run(
            json!({ "query": "SELECT repeat('x', 1000) AS x FROM generate_series(1, 20)", "max_result_bytes": max }),
        )
    };
    let failed = rows(18_000).failure().clone();
    assert_eq!((failed.class.name(), failed.code.as_str()), ("validation", "RESULT_TOO_LARGE"));
    assert_eq!(rows(40_000).output()["row_count"], 20);
}

#[test]
fn what_cannot_be_meant_is_refused_without_telling_secrets() {
    let check = |config: Value, expected: &str| {
        let task = json!({ "label": "db", "kind": "postgres", "config": config });
        let finished = Shop::open().run(pipeline(json!({ "tasks": [task] })));
        let failed = finished.failure();
        assert_eq!((failed.code.as_str(), failed.message.as_str()), ("INVALID_CONFIGURATION", expected));
    };
    let with = |more: Value| {
        let mut config = json!({ "host": "127.0.0.1", "password": "s3cret" });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    check(
        with(json!({})),
        "postgres needs `command`, a text, `commands`, a list of them, or `script`, a file",
    );
    check(json!({ "command": "SELECT 1" }), "postgres needs `host`, or `auth` with one in it");
    check(with(json!({ "command": " -- nothing" })), "`command` of postgres has no statement in it");
    check(
        with(json!({ "command": "a", "query": "b" })),
        "postgres has both `command` and `query`, which mean the same; keep one of them",
    );
    check(with(json!({ "command": ["a"] })), "`command` of postgres is a text, not [\"a\"]");
    check(
        with(json!({ "commands": [1] })),
        "`commands` of postgres is a list of texts or {command, params}, not 1",
    );
    check(
        with(json!({ "command": "a; b", "params": [1] })),
        "`params` of postgres are for one statement, and there are several; use `commands`",
    );
    check(
        with(json!({ "commands": ["a"], "params": [1] })),
        "`params` of postgres belong to one of `commands`: {command, params}",
    );
    check(
        with(json!({ "command": "a", "params": { "x": 1 } })),
        "`params` of postgres is a list, for $1, $2, …",
    );
    check(with(json!({ "command": "a", "port": 70_000 })), "`port` of postgres is a port, not `70000`");
    check(
        json!({ "command": "a", "dsn": "postgres://u:s3cret@h:port/d" }),
        "`connection_string` of postgres cannot be read: invalid value for option `port`",
    );
    check(
        with(json!({ "comand": "a" })),
        "postgres has no field `comand`; it has command, query, commands, script, params, auth, credential, host, port, user, password, database, dbname, schema, sslmode, connection_string, dsn, max_result_bytes, args, input, name, timeout_seconds",
    );
}

#[test]
fn what_requests_may_not_reach_statements_may_not_either() {
    let closed = || Shop::reaching(Egress::default());
    for place in [
        json!({}),
        json!({ "host": "localhost" }),
        json!({ "host": "169.254.169.254" }),
        json!({ "host": "/tmp" }),
    ] {
        let mut fields = json!({ "command": "SELECT 1" });
        fields.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let finished = closed().run(work(fields));
        let failure = finished.failure();
        assert_eq!(
            (failure.class.name(), failure.code.as_str()),
            ("policy", "EGRESS_REFUSED"),
            "{place}: {failure:?}"
        );
    }
}
