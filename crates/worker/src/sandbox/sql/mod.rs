//! One statement for SQLite. It reaches its own database and nothing else.
//!
//! | file | content |
//! |---|---|
//! | `database.rs` | the connection: the place of the file, and its limits |
//! | `permission.rs` | actions and functions that a statement may use |
//! | `quota.rs` | maximum size of databases |
//! | `statement.rs` | the statement and its rows |
//! | `tables.rs` | rows of the step as tables |

mod database;
mod permission;
mod quota;
mod statement;
mod tables;

pub(crate) use database::{FILE_BYTES_FACTOR, STATEMENT_TIME};
pub(crate) use statement::{ROWS_BYTES_MAX, run};
pub use windlass_protocol::DatabaseQuota;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statement {
    pub(crate) query: String,
    pub(crate) params: Vec<Value>,
    /// None: a database in memory.
    pub(crate) database: Option<Database>,
    pub(crate) tables: Map<String, Value>,
}

/// A file of a tenant.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Database {
    /// Folder of the tenant's databases; the process works in the root folder, so it is absolute.
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    pub(crate) quota: DatabaseQuota,
}
