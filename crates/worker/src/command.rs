//! Processes that are the worker's own program with another subcommand.

use std::ffi::OsString;
use std::path::PathBuf;

/// How one of them is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}
