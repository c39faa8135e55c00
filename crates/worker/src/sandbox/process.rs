//! The process's side: limits first, then the job.
//!
//! Input: a line with the limits as JSON, written by the worker, then the job as JSON, with the text of the tenant.
//! Output: `+` and the result as JSON, or `-` and the failure as JSON.

use super::{Job, Limits, paths, sql};
use std::io::{self, BufRead, BufReader, Read, Write};
use windlass_protocol::Failure;

/// A line of limits has a few dozen bytes.
const LIMITS_LINE_MAX: u64 = 4 * 1024;

pub(super) const DONE: u8 = b'+';
pub(super) const FAILED: u8 = b'-';

/// Runs the job from the input. An error means that there was none, because the worker has ended.
pub fn run(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.by_ref().take(LIMITS_LINE_MAX).read_line(&mut line)?;
    let limits: Limits = serde_json::from_str(&line)?;
    limits.apply()?;
    let mut job = Vec::new();
    input.read_to_end(&mut job)?;
    let parsed: Job = serde_json::from_slice(&job)?;
    drop(job);
    match done(parsed) {
        Ok(result) => {
            output.write_all(&[DONE])?;
            output.write_all(&result)?;
        }
        Err(failure) => {
            output.write_all(&[FAILED])?;
            serde_json::to_writer(&mut output, &failure)?;
        }
    }
    output.flush()
}

fn done(job: Job) -> Result<Vec<u8>, Box<Failure>> {
    match job {
        Job::Sql(statement) => sql::run(&statement),
        Job::CheckPaths(paths) => paths::check(&paths),
        Job::FindPaths { paths, data } => paths::find(&paths, &data),
    }
}
