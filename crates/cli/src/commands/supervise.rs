//! The process that has a step's program and all that it starts as descendants. Started by the pool, not by people.

use std::ffi::OsString;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

pub fn run(argv: &[OsString]) -> anyhow::Result<ExitCode> {
    let socket = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    let output = Stdio::from(stdout().as_fd().try_clone_to_owned()?);
    Ok(ExitCode::from(windlass_worker::supervisor::run(argv, socket, output)?))
}
