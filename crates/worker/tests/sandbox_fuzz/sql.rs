//! Statements for SQLite: none reaches beyond its database, harms it or its process.

use super::outside::Surroundings;
use super::statements::Vocabulary;
use super::{Bounds, Job, Limits, Yard, repeat};
use crate::sandbox::{Database, DatabaseQuota, ROWS_BYTES_MAX, Statement};
use serde_json::Map;
use std::time::Duration;

const DATABASE_BYTES: u64 = 8 << 20;

const BOUNDS: Bounds = Bounds {
    what: "the statement",
    limits: Limits { memory_bytes: 256 << 20, cpu_seconds: 1, file_bytes: Some(2 * DATABASE_BYTES) },
    time: Duration::from_secs(20),
    result_bytes_max: ROWS_BYTES_MAX,
};

/// Statements on one database, before the next one is made.
const STATEMENTS: usize = 60;

/// Codes with which a statement may fail. Any other end, such as a crash, is a defect.
const CODES: [&str; 9] = [
    "DB_SYNTAX",
    "DB_STATEMENT",
    "DB_CONSTRAINT",
    "DB_TIMEOUT",
    "DB_NOT_OPENED",
    "PERMISSION_DENIED",
    "LIMIT_EXCEEDED",
    "RESULT_TOO_LARGE",
    "INVALID_CONFIGURATION",
];

#[test]
fn statements_reach_nothing_but_their_database_and_leave_it_whole() {
    let (yard, around) = (Yard::new(), Surroundings::new());
    let vocabulary = Vocabulary::of_sqlite(&around.elsewhere());
    let mut count = 0;
    repeat("statements", 10, |random| {
        count += 1;
        if count % STATEMENTS == 0 {
            around.renew();
        }
        let query = match count % STATEMENTS {
            0 | 1 => "CREATE TABLE IF NOT EXISTS t (a, b)".to_owned(),
            2 => "INSERT INTO t VALUES (1, 'x'), ('{\"a\": [1]}', x'00ff'), (NULL, 1e308)".to_owned(),
            _ => vocabulary.statement(random),
        };
        let quota = DatabaseQuota { each: Some(DATABASE_BYTES), tenant: Some(DATABASE_BYTES * 4) };
        let database = Database { folder: around.folder(), name: "own.db".to_owned(), quota };
        let statement = Statement {
            query: query.clone(),
            params: Vec::new(),
            database: Some(database),
            tables: Map::new(),
        };
        let done = yard.run(Job::Sql(statement), &BOUNDS);
        if let Some(wrong) = around.wrong() {
            panic!("{wrong} after {query}\n{done:?}");
        }
        match done {
            Ok(_) => "done".to_owned(),
            Err(failure) => {
                let is_known = CODES.contains(&failure.code.as_str()) && !failure.message.contains("crashed");
                assert!(is_known, "{query}\n{failure:?}");
                failure.code.clone()
            }
        }
    });
}
