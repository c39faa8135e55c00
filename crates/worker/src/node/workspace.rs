//! The folder of one attempt of a node. Only this user can open it, and it is removed with the attempt.
//!
//! ```text
//! context/context.json      its identity, its inputs and its rendered config
//! context/inputs.json       the inputs alone
//! context/credentials.json  values of its secrets
//! outputs/                  its results: result.json, or files
//! lib/                      the module `windlass` for python and javascript
//! bin/windlass-node         the same for shell scripts
//! abort                     exists when it must stop
//! ```

use super::{NodeContext, output, socket};
use crate::failure::{failure, invalid};
use crate::halt::{Halt, HaltSender};
use crate::tools::ToolContext;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::spawn_blocking;
use windlass_protocol::{Failure, codes};

const PYTHON: &str = include_str!("windlass.py");
const JAVASCRIPT: &str = include_str!("windlass.cjs");

/// Maximum size of a result, which is stored with the execution. Larger data belongs in a file or a database.
const OUTPUT_MAX: u64 = 32 * 1024 * 1024;
/// Maximum number of files of one node that become its output.
const FILES_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Workspace {
    dir: TempDir,
    /// The socket has its own folder: its path must be short.
    _door: TempDir,
    listener: UnixListener,
    /// Variables that override the worker's environment.
    env: BTreeMap<String, String>,
}

impl Workspace {
    /// Creates the folder. `own` are the node's own variables, `config` is the configuration of its tool.
    pub(crate) async fn make(
        cx: &ToolContext,
        node: &NodeContext,
        own: &Value,
    ) -> Result<Workspace, Box<Failure>> {
        let mut context = node.identity();
        let inputs = node.inputs(&cx.kit, own).await?;
        context.insert("inputs".to_owned(), Value::Object(inputs.clone()));
        context.insert("workflowInputs".to_owned(), node.workload(&cx.kit).await?);
        context.insert("config".to_owned(), Value::Object(node.node.config.clone()));
        context.insert("env".to_owned(), json!(node.node.env));
        let credentials = json!(node.credentials(&cx.kit).await?);
        let (helper, folders) = (cx.kit.helper.clone(), cx.kit.folders.clone());
        let written = move || write(&folders, &context, &inputs, &credentials, helper.as_deref());
        let dir = run_blocking(written).await.map_err(|error| unusable(&error))?;
        let door = private_folder(&std::env::temp_dir()).map_err(|error| unusable(&error))?;
        let socket = door.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(|error| unusable(&error))?;
        let env = environment(dir.path(), &socket, node);
        Ok(Workspace { dir, _door: door, listener, env })
    }

    /// Returns the environment, with the node's own `env` over it.
    pub(crate) fn env(&self, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        env
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> Result<PathBuf, Box<Failure>> {
        let path = self.dir.path().join(name);
        private(&path, 0o600, text.as_bytes()).map_err(|error| unusable(&error))?;
        Ok(path)
    }

    /// Answers the program's requests until it is dropped.
    pub(crate) async fn serve(&self, cx: &ToolContext, node: &NodeContext) -> Infallible {
        socket::serve(&self.listener, cx, node).await
    }

    /// Passes an order to stop on to the program, after the abort file exists: a program that gets the signal finds the file.
    pub(crate) async fn pass_stop(&self, mut halt: Halt, program: HaltSender) -> Infallible {
        loop {
            let grace_ms = halt.requested().await;
            // A program whose folder cannot be written still gets the signal.
            let _ = fs::write(self.dir.path().join("abort"), b"");
            program.request(grace_ms);
        }
    }

    /// Reads `outputs/`: `result.json` by the node contract, or else the files by their names.
    pub(crate) async fn outputs(&self, node: &NodeContext) -> Result<Outputs, Box<Failure>> {
        let folder = self.dir.path().join("outputs");
        let read = run_blocking(move || read_outputs(&folder)).await.map_err(|error| unusable(&error))?;
        match read? {
            Found::Result(given) => output::read_output(given, &node.meter).map(Outputs::Result),
            Found::Files(files) => Ok(Outputs::Files(files)),
        }
    }
}

pub(crate) enum Outputs {
    Result(Value),
    Files(Map<String, Value>),
}

enum Found {
    Result(Value),
    Files(Map<String, Value>),
}

fn environment(dir: &Path, socket: &Path, node: &NodeContext) -> BTreeMap<String, String> {
    let inside = |name: &str| dir.join(name).display().to_string();
    let before = |name: &str, folder: &str| match std::env::var(name) {
        Ok(others) if !others.is_empty() => format!("{}:{others}", inside(folder)),
        _ => inside(folder),
    };
    let mut env: BTreeMap<String, String> = node.node.env.clone();
    for (name, value) in [
        ("WINDLASS_CONTEXT", inside("context")),
        ("WINDLASS_OUTPUTS", inside("outputs")),
        ("WINDLASS_SOCKET", socket.display().to_string()),
        ("WINDLASS_ABORT", inside("abort")),
        ("PATH", before("PATH", "bin")),
        ("PYTHONPATH", before("PYTHONPATH", "lib")),
        ("NODE_PATH", before("NODE_PATH", "lib")),
        ("WINDLASS_NODE_ID", node.node.id.clone()),
    ] {
        env.insert(name.to_owned(), value);
    }
    env
}

fn private_folder(within: &Path) -> io::Result<TempDir> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("windlass-node-").permissions(Permissions::from_mode(0o700)).tempdir_in(within)
}

fn write(
    folders: &Path,
    context: &Map<String, Value>,
    inputs: &Map<String, Value>,
    credentials: &Value,
    helper: Option<&Path>,
) -> io::Result<TempDir> {
    let dir = private_folder(folders)?;
    let at = dir.path();
    for folder in ["context", "outputs", "lib", "bin"] {
        fs::create_dir(at.join(folder))?;
    }
    private(&at.join("context/context.json"), 0o600, &serde_json::to_vec(context)?)?;
    private(&at.join("context/inputs.json"), 0o600, &serde_json::to_vec(inputs)?)?;
    private(&at.join("context/credentials.json"), 0o600, &serde_json::to_vec(credentials)?)?;
    private(&at.join("lib/windlass.py"), 0o600, PYTHON.as_bytes())?;
    private(&at.join("lib/windlass.js"), 0o600, JAVASCRIPT.as_bytes())?;
    if let Some(helper) = helper {
        let program = helper.display().to_string().replace('\'', "'\\''");
        let script = format!("#!/bin/sh\nexec '{program}' node \"$@\"\n");
        private(&at.join("bin/windlass-node"), 0o700, script.as_bytes())?;
    }
    Ok(dir)
}

fn private(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}

fn read_outputs(folder: &Path) -> io::Result<Result<Found, Box<Failure>>> {
    let mut left = OUTPUT_MAX;
    if folder.join("result.json").is_file() {
        let bytes = bounded(&folder.join("result.json"), &mut left)?;
        return Ok(match bytes.map(|bytes| serde_json::from_slice(&bytes)) {
            Some(Ok(given)) => Ok(Found::Result(given)),
            Some(Err(error)) => {
                let message = format!("outputs/result.json is not JSON: {error}");
                Err(failure(codes::RESULT_NOT_JSON, message))
            }
            None => Err(too_large()),
        });
    }
    let mut files = Map::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if files.len() >= FILES_MAX {
            return Ok(Err(invalid(format!("outputs/ has more than {FILES_MAX} files; write result.json"))));
        }
        let Some(bytes) = bounded(&entry.path(), &mut left)? else { return Ok(Err(too_large())) };
        let parsed = name.ends_with(".json").then(|| serde_json::from_slice(&bytes).ok()).flatten();
        let value = parsed.unwrap_or_else(|| json!(String::from_utf8_lossy(&bytes)));
        files.insert(name, value);
    }
    Ok(Ok(Found::Files(files)))
}

/// Returns None if there is more than `left` bytes.
fn bounded(path: &Path, left: &mut u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(*left + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    if length > *left {
        return Ok(None);
    }
    *left -= length;
    Ok(Some(bytes))
}

fn too_large() -> Box<Failure> {
    let message = format!(
        "outputs/ has more than {OUTPUT_MAX} bytes; store the data elsewhere and return its location"
    );
    failure(codes::RESULT_TOO_LARGE, message)
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn unusable(error: &io::Error) -> Box<Failure> {
    let message = format!("the work folder of the node cannot be used: {error}");
    let mut failed = failure(codes::NODE_NOT_STARTED, message);
    failed.retryable = Some(true);
    failed
}
