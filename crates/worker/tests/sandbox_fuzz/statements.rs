//! Statements near the edge of what is allowed: every function, pragma and module that SQLite has, in every kind of
//! statement. The names come from SQLite itself and not from the list of what is allowed.

use super::random::Random;
use rusqlite::Connection;

const LEAVES: &[&str] = &[
    "1",
    "-1",
    "0",
    "NULL",
    "'x'",
    "''",
    "a",
    "b",
    "x'4141414141414141'",
    "x''",
    "9223372036854775807",
    "-9223372036854775808",
    "1e999",
    "'%s %d %!.9999f'",
    "'%9999999d'",
    "'$.a'",
    "'{\"a\": [1, {\"b\": null}]}'",
    "'simple'",
    "'/etc/passwd'",
    "zeroblob(1000000000)",
    "randomblob(99999)",
    "char(0)",
    "'[[[[[[[['",
    "'now'",
    "'+999999 years'",
    "CURRENT_TIMESTAMP",
    "?",
    "'main'",
    "(SELECT a FROM t)",
    "(SELECT max(a) FROM t)",
    "*",
    "'a' COLLATE nocase",
    "EXISTS (SELECT 1)",
    "RAISE(ABORT, 'x')",
    "rowid",
    "t.a",
    "main.t.a",
];

const SHAPES: &[&str] = &[
    "SELECT @",
    "SELECT @ AS x, @ AS y FROM t",
    "SELECT @ FROM t WHERE @",
    "SELECT @ OVER (ORDER BY a ROWS BETWEEN @ PRECEDING AND CURRENT ROW) FROM t",
    "SELECT a FROM t GROUP BY @ HAVING @",
    "SELECT * FROM #",
    "SELECT * FROM #(@)",
    "SELECT * FROM #(@, @) AS m, t",
    "SELECT * FROM pragma_%",
    "SELECT * FROM pragma_%(@)",
    "PRAGMA %",
    "PRAGMA % = @",
    "PRAGMA %(@)",
    "PRAGMA main.%",
    "PRAGMA temp.% = 1",
    "CREATE VIRTUAL TABLE v USING #",
    "CREATE VIRTUAL TABLE v USING #(a, @)",
    "CREATE VIRTUAL TABLE temp.v USING #(a)",
    "CREATE VIEW v AS SELECT @ AS x FROM t",
    "CREATE VIEW v AS SELECT * FROM #",
    "CREATE VIEW v AS SELECT * FROM pragma_%",
    "SELECT * FROM v",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT @; END",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO t VALUES (@, @); END",
    "INSERT INTO t VALUES (@, @)",
    "INSERT INTO t SELECT @, @ FROM t, t AS u, t AS w",
    "INSERT INTO t VALUES (1, 2) ON CONFLICT DO UPDATE SET a = @ RETURNING @",
    "UPDATE t SET a = @",
    "DELETE FROM t WHERE @",
    "CREATE INDEX i ON t (@)",
    "CREATE TABLE n (a DEFAULT (@), b CHECK (@), c AS (@))",
    "INSERT INTO n (a) VALUES (@)",
    "CREATE TEMP TABLE m AS SELECT @ AS x",
    "ALTER TABLE t ADD COLUMN c DEFAULT (@)",
    "ALTER TABLE t RENAME COLUMN b TO c",
    "ALTER TABLE t RENAME COLUMN c TO b",
    "ALTER TABLE t RENAME TO t2",
    "ALTER TABLE t2 RENAME TO t",
    "ALTER TABLE t DROP COLUMN c",
    "ATTACH '^' AS o",
    "ATTACH @ AS o",
    "ATTACH ':memory:' AS o",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '^.copy'",
    "VACUUM main INTO @",
    "REINDEX",
    "ANALYZE",
    "ANALYZE sqlite_schema",
    "UPDATE sqlite_schema SET sql = @",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, @)",
    "DELETE FROM sqlite_schema",
    "DROP TABLE sqlite_schema",
    "DROP VIEW v",
    "DROP TRIGGER g",
    "DROP TABLE n",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "ROLLBACK",
    "EXPLAIN SELECT @",
    "EXPLAIN QUERY PLAN SELECT * FROM #",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*), max(@) FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, randomblob(1000) FROM n",
    "SELECT * FROM json_each(@), json_tree(@)",
    "SELECT @; SELECT @",
    "/* @ */ SELECT 1 -- @",
    "INSERT INTO sqlite_sequence VALUES (@, @)",
    "SELECT * FROM sqlite_dbpage",
    "UPDATE sqlite_dbpage SET data = zeroblob(4096)",
    "INSERT INTO sqlite_dbpage VALUES (1, x'', 'main')",
    "SELECT * FROM '^'",
    "CREATE TABLE IF NOT EXISTS t (a, b)",
    "SELECT load_extension('^')",
    "SELECT fts3_tokenizer(@, @)",
];

/// Everything that the library has a name for.
pub(super) struct Vocabulary {
    functions: Vec<String>,
    pragmas: Vec<String>,
    modules: Vec<String>,
    /// A file that is not the statement's.
    elsewhere: String,
}

impl Vocabulary {
    pub(super) fn of_sqlite(elsewhere: &str) -> Vocabulary {
        let conn = Connection::open_in_memory().unwrap();
        let names = |list: &str| {
            let mut found =
                conn.prepare(&format!("SELECT DISTINCT name FROM pragma_{list} ORDER BY 1")).unwrap();
            let found = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
            found.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let (functions, pragmas, modules) =
            (names("function_list"), names("pragma_list"), names("module_list"));
        assert!(functions.len() > 100 && pragmas.len() > 30 && !modules.is_empty());
        Vocabulary { functions, pragmas, modules, elsewhere: elsewhere.to_owned() }
    }

    pub(super) fn statement(&self, random: &mut Random) -> String {
        let mut text = String::new();
        for sign in random.one(SHAPES).chars() {
            match sign {
                '@' => text.push_str(&self.expression(random, 2)),
                '#' => text.push_str(&self.modules[random.below(self.modules.len())]),
                '%' => text.push_str(&self.pragmas[random.below(self.pragmas.len())]),
                '^' => text.push_str(&self.elsewhere),
                sign => text.push(sign),
            }
        }
        if random.below(15) == 0 { broken(random, &text) } else { text }
    }

    fn expression(&self, random: &mut Random, depth: usize) -> String {
        if depth == 0 || random.below(3) == 0 {
            return random.one(LEAVES).to_owned();
        }
        let (a, b) = (self.expression(random, depth - 1), self.expression(random, depth - 1));
        let name = &self.functions[random.below(self.functions.len())];
        match random.below(8) {
            0 => format!(
                "{a} {} {b}",
                random.one(&["+", "||", "->>", "LIKE", "GLOB", "MATCH", "REGEXP", "IS", "<<", "%", "AND"])
            ),
            1 => format!("\"{name}\"({a})"),
            2 => format!("{name}()"),
            3 => format!("{name}({a})"),
            4 => format!("{name}({a}, {b}, {b})"),
            5 => format!("CAST({a} AS {})", random.one(&["BLOB", "TEXT", "INTEGER", "x"])),
            _ => format!("{name}({a}, {b})"),
        }
    }
}

fn broken(random: &mut Random, text: &str) -> String {
    let mut signs: Vec<char> = text.chars().collect();
    let at = random.below(signs.len() + 1);
    match random.below(3) {
        0 => signs.truncate(at),
        1 => signs.insert(at, *random.one(&[&'\'', &'"', &';', &'\0', &'(', &'[', &'`', &'é'])),
        _ => drop(signs.drain(at..(at + random.below(9)).min(signs.len()))),
    }
    signs.into_iter().collect()
}
