//! Processes of the worker's own program with another subcommand, and the name of their machine.

use std::ffi::OsString;
use std::path::PathBuf;

/// Command that starts one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Returns the name of this machine, which identifies a worker for people.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
