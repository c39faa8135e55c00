//! Processes that are the worker's own program with another subcommand; the machine that they run on.

use std::ffi::OsString;
use std::path::PathBuf;

/// How one of them is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Returns the name of this machine, which people know a worker by.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
