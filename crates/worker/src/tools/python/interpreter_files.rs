//! Exchange between worker and interpreter: files in a directory that only this user can open, and that is removed
//! with the task.

use super::config::{Program, TOOL};
use crate::failure::failure;
use crate::footprint::{Share, estimate};
use crate::tools::source::{blocking, bounded};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use windlass_protocol::{Failure, codes};

pub(in crate::tools) const RUNNER: &str = include_str!("runner.py");

/// Maximum bytes of a traceback in an error.
pub(in crate::tools) const TRACEBACK_MAX: usize = 16 * 1024;

/// Maximum bytes of a result as JSON. It is stored as an artifact; a larger one belongs in a file or a database.
const ANSWER_MAX: u64 = 128 << 20;

/// Message of the runner.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum RunnerAnswer {
    Result(Value),
    Unset(()),
    NotJson(String),
    NoLibrary(String),
    Exception(Exception),
}

#[derive(Debug, Deserialize)]
pub(in crate::tools) struct Exception {
    pub(in crate::tools) exception_type: String,
    pub(in crate::tools) message: String,
    pub(in crate::tools) traceback: String,
    pub(in crate::tools) trouble: Option<String>,
    /// Retryability that the exception itself states.
    #[serde(default)]
    pub(in crate::tools) code: Option<String>,
    #[serde(default)]
    pub(in crate::tools) retryable: Option<bool>,
    /// Place in the code of the task, from 1.
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    column: Option<u32>,
}

impl Exception {
    /// Adds the place in the code to the details of a failure.
    pub(in crate::tools) fn add_place(&self, details: &mut Value) {
        for (key, number) in [("line", self.line), ("column", self.column)] {
            if let Some(number) = number {
                details[key] = json!(number);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct InterpreterFiles {
    dir: TempDir,
    runner: PathBuf,
}

impl InterpreterFiles {
    pub(super) async fn write(program: &Program, args: &Value) -> Result<InterpreterFiles, Box<Failure>> {
        let code = program.source.text(TOOL).await?;
        let args = if args.is_null() { json!({}) } else { args.clone() };
        let name = program.source.name();
        let request = json!({ "code": code, "name": name, "args": args, "libs": program.libs });
        let written = blocking(move || written(&request)).await;
        written.map_err(|error| unusable(&error))
    }

    pub(super) fn runner(&self) -> &OsStr {
        self.runner.as_os_str()
    }

    /// Returns the answer; None if the interpreter left none. The directory is removed afterwards.
    pub(super) async fn read(self, share: &Share) -> Result<Option<RunnerAnswer>, Box<Failure>> {
        read_answer(self.dir.path(), share).await
    }
}

/// Returns the answer of a runner in its folder, when the tenant has room for it.
pub(in crate::tools) async fn read_answer(
    folder: &Path,
    share: &Share,
) -> Result<Option<RunnerAnswer>, Box<Failure>> {
    let path = folder.join("answer.json");
    let Some((file, bytes)) = blocking(move || open(&path)).await.map_err(|error| unusable(&error))? else {
        return Ok(None);
    };
    if bytes > ANSWER_MAX {
        return Err(too_large(&format!("it has {} MiB as JSON, and {} MiB", bytes >> 20, ANSWER_MAX >> 20)));
    }
    let _room = share.text(bytes).await;
    let read = blocking(move || {
        let json = bounded(file, ANSWER_MAX)?;
        let memory = estimate(&json);
        Ok((json, memory))
    });
    let (json, memory) = read.await.map_err(|error| unusable(&error))?;
    match memory {
        Ok(memory) => share.result(memory).await.map_err(|error| too_large(&error.to_string()))?,
        // The interpreter bounds the depth; the engine refuses what is too deep for it.
        Err(_) => share.release(),
    }
    // A large answer takes time to be parsed, too.
    let parsed = blocking(move || Ok(serde_json::from_slice(&json))).await;
    parsed
        .map_err(|error| unusable(&error))?
        .map(Some)
        .map_err(|error| failure(codes::RESULT_NOT_JSON, format!("the result cannot be read: {error}")))
}

fn too_large(why: &str) -> Box<Failure> {
    let message =
        format!("the result is too large: {why} is the maximum; write it to a file and return its path");
    failure(codes::RESULT_TOO_LARGE, message)
}

fn written(request: &Value) -> io::Result<InterpreterFiles> {
    let dir = tempfile::Builder::new()
        .prefix("windlass-python-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let runner = dir.path().join("run.py");
    private(&runner)?.write_all(RUNNER.as_bytes())?;
    private(&dir.path().join("request.json"))?.write_all(&serde_json::to_vec(request)?)?;
    Ok(InterpreterFiles { dir, runner })
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file, and returns its size.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    match File::open(path) {
        Ok(file) => {
            let bytes = file.metadata()?.len();
            Ok(Some((file, bytes)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unusable(error: &io::Error) -> Box<Failure> {
    let message = format!("the directory through which {TOOL} is called cannot be used: {error}");
    let mut failed = failure(codes::PYTHON_NOT_STARTED, message);
    failed.retryable = Some(true);
    failed
}
