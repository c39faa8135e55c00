//! Commands with which the program starts itself; users do not call them.

use std::ffi::OsString;
use std::io::{Write as _, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

/// Calls the engine for a script of a workflow node, as `windlass-node`.
pub fn call_node(args: &[String]) -> anyhow::Result<ExitCode> {
    let answer = windlass_worker::node::helper::run(args, |name| std::env::var(name).ok());
    if let Some(value) = answer.map_err(anyhow::Error::msg)? {
        // A string is printed without quotes, which scripts would have to remove.
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(stdout(), "{text}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the program of a step as the parent of all processes that it starts.
pub fn supervise(argv: &[OsString]) -> anyhow::Result<ExitCode> {
    let socket = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    let output = Stdio::from(stdout().as_fd().try_clone_to_owned()?);
    Ok(ExitCode::from(windlass_worker::supervisor::run(argv, socket, output)?))
}

/// Computes untrusted statements and paths in a process with limits of its own.
pub fn sandbox() -> anyhow::Result<ExitCode> {
    windlass_worker::sandbox::run(stdin().lock(), stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
