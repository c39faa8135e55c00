//! The process that computes what strangers wrote: a statement, a path. Started by the pool, not by people.

use std::io::{stdin, stdout};
use std::process::ExitCode;

pub fn run() -> anyhow::Result<ExitCode> {
    windlass_worker::sandbox::run(stdin().lock(), stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
