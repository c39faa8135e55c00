//! Sandbox processes: one process for one computation that is given by a text of a tenant, such as an SQL statement or
//! a JSONPath.
//!
//! The process is the worker's own program with a hidden subcommand that calls [`run`]. It has no environment, no open
//! files but its three streams, and limits on memory, CPU time and files that it sets before it reads its job. A
//! computation that exceeds a limit, crashes or hangs ends its own process and fails its step; the worker continues.
//!
//! | file | content |
//! |---|---|
//! | `host.rs` | the worker's side: start, wait, kill |
//! | `process.rs` | the process's side: read the job, do it, answer |
//! | `limits.rs` | the limits and how a process sets them |
//! | `paths.rs` | the job JSONPath |
//! | `sql/` | the job SQLite |

mod host;
mod limits;
mod paths;
mod process;
mod sql;

pub(crate) use host::{Bounds, Places, Sandbox};
pub(crate) use limits::Limits;
pub(crate) use paths::FOUND_BYTES_MAX;
pub use process::run;
pub use sql::DatabaseQuota;
pub(crate) use sql::{Database, FILE_BYTES_FACTOR, ROWS_BYTES_MAX, STATEMENT_TIME, Statement};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Computation of one process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Returns `{rows, row_count, columns}`.
    Sql(Statement),
    /// Returns null, or fails with the problem of the first path that is not valid.
    CheckPaths(Vec<String>),
    /// Returns a list for each path: the values it finds.
    FindPaths { paths: Vec<String>, data: Value },
}

#[cfg(test)]
#[path = "../../tests/sandbox_fuzz/mod.rs"]
mod fuzz;
