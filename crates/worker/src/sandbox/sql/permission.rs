//! Permissions of a statement: an allow list. All other actions are refused, also those that a later SQLite adds.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of SQLite that only compute. Left out on purpose: `load_extension` and `fts3_tokenizer`, which take
/// addresses and code, and those that reveal the library or files.
const FUNCTIONS: &[&str] = &[
    // Values and texts.
    "->",
    "->>",
    "abs",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "format",
    "glob",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "last_insert_rowid",
    "length",
    "like",
    "likelihood",
    "likely",
    "lower",
    "ltrim",
    "max",
    "min",
    "nullif",
    "octet_length",
    "printf",
    "quote",
    "random",
    "randomblob",
    "replace",
    "round",
    "rtrim",
    "sign",
    "soundex",
    "sqlite_version",
    "substr",
    "substring",
    "subtype",
    "total_changes",
    "trim",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unistr_quote",
    "unlikely",
    "upper",
    "zeroblob",
    // Dates and times.
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "julianday",
    "strftime",
    "time",
    "timediff",
    "unixepoch",
    // Aggregates and windows.
    "avg",
    "count",
    "cume_dist",
    "dense_rank",
    "first_value",
    "group_concat",
    "lag",
    "last_value",
    "lead",
    "median",
    "nth_value",
    "ntile",
    "percent_rank",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "rank",
    "row_number",
    "string_agg",
    "sum",
    "total",
    // Mathematics.
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "ceiling",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "floor",
    "ln",
    "log",
    "log10",
    "log2",
    "mod",
    "pi",
    "pow",
    "power",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    // JSON.
    "json",
    "json_array",
    "json_array_insert",
    "json_array_length",
    "json_each",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_tree",
    "json_type",
    "json_valid",
    "jsonb",
    "jsonb_array",
    "jsonb_array_insert",
    "jsonb_each",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "jsonb_tree",
    // ALTER TABLE calls these; SQLite itself refuses them in a statement.
    "sqlite_add_constraint",
    "sqlite_drop_column",
    "sqlite_drop_constraint",
    "sqlite_fail",
    "sqlite_find_constraint",
    "sqlite_rename_column",
    "sqlite_rename_quotefix",
    "sqlite_rename_table",
    "sqlite_rename_test",
];

/// Reason of the refusal, for the message: SQLite reports only "not authorized".
#[derive(Debug, Clone, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Checks one action. Called for every action of a statement.
    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        match refused(&context.action) {
            None => Authorization::Allow,
            Some(why) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                Authorization::Deny
            }
        }
    }
}

fn refused(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Function { function_name } => {
            let is_allowed = FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name));
            (!is_allowed).then(|| format!("the function `{function_name}`"))
        }
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Recursive
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. } => None,
        AuthAction::Pragma { pragma_name, .. } => Some(format!("PRAGMA {pragma_name}")),
        AuthAction::Attach { .. } => Some("ATTACH and VACUUM".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH".to_owned()),
        AuthAction::CreateVtable { module_name, .. } | AuthAction::DropVtable { module_name, .. } => {
            Some(format!("virtual tables of `{module_name}`"))
        }
        AuthAction::Unknown { code, .. } => Some(format!("the action of SQLite with code {code}")),
        _ => Some("an action of a newer SQLite".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn check(statement: &str, expected: Option<&str>) {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a, b); CREATE VIEW v AS SELECT a FROM t").unwrap();
        let refusal = Refusal::default();
        let judge = refusal.clone();
        conn.authorizer(Some(move |context: AuthContext<'_>| judge.judge(&context))).unwrap();
        let done = conn.execute_batch(statement);
        assert_eq!(refusal.take().as_deref(), expected, "{statement}: {done:?}");
        assert_eq!(done.is_ok(), expected.is_none(), "{statement}: {done:?}");
    }

    #[test]
    fn statements_that_compute_and_change_their_own_database_are_allowed() {
        check("SELECT upper(a), count(*), json_extract(b, '$.x') FROM t GROUP BY a", None);
        check(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT sum(i) FROM n",
            None,
        );
        check("SELECT a ->> '$.x', rank() OVER (ORDER BY a) FROM t, json_each(t.b)", None);
        check(
            "INSERT INTO t VALUES (1, 2); UPDATE t SET a = 3; DELETE FROM t; DROP VIEW v; DROP TABLE t",
            None,
        );
        check("CREATE INDEX i ON t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END", None);
        check(
            "ALTER TABLE t RENAME COLUMN a TO c; ALTER TABLE t DROP COLUMN b; ALTER TABLE t RENAME TO u",
            None,
        );
        check(
            "CREATE TEMP TABLE m AS SELECT * FROM t; BEGIN; SAVEPOINT s; RELEASE s; COMMIT; REINDEX; ANALYZE",
            None,
        );
    }

    #[test]
    fn statements_that_reach_further_are_refused() {
        check("SELECT fts3_tokenizer('simple')", Some("the function `fts3_tokenizer`"));
        check("SELECT load_extension('x')", Some("the function `load_extension`"));
        check("SELECT sqlite_compileoption_get(1)", Some("the function `sqlite_compileoption_get`"));
        check("PRAGMA temp_store_directory = '/tmp'", Some("PRAGMA temp_store_directory"));
        check("PRAGMA writable_schema = 1", Some("PRAGMA writable_schema"));
        check("SELECT * FROM pragma_database_list", Some("PRAGMA database_list"));
        check("ATTACH '/tmp/x.db' AS x", Some("ATTACH and VACUUM"));
        check("VACUUM INTO '/tmp/x.db'", Some("ATTACH and VACUUM"));
        check("DETACH main", Some("DETACH"));
        check("CREATE VIRTUAL TABLE f USING fts4(a)", Some("virtual tables of `fts4`"));
        check("CREATE VIRTUAL TABLE r USING rtree(id, a, b)", Some("virtual tables of `rtree`"));
    }
}
