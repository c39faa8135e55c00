//! Programs in containers, run with docker or podman.
//!
//! | field | meaning |
//! |---|---|
//! | `image` | the image |
//! | `command` | a list of words, or a script for `sh -c`; the image's own command by default |
//! | `env` | variables of the program |
//! | `cwd` | the directory in the container |
//! | `volumes` | folders of the worker, each as `FOLDER:PATH` |
//! | `engine` | `docker` or `podman`; the first that is found by default |
//! | `timeout_seconds` | as `spec.timeout` |
//! | `args`, `input` | for templates of the other fields |
//!
//! The result is that of `shell`. The container has the name of the firing, so that a container which an earlier attempt
//! left behind is removed before the next one starts.

use super::fields::{Fields, plain};
use super::program::{ERROR_TAIL_MAX, Ended, Program};
use super::{ToolContext, shell};
use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;
use windlass_protocol::{Failure, Tool, Unit, codes};
use windlass_secrets::withheld_variables;

const TOOL: &str = Tool::Container.kind();
const ENGINES: [&str; 2] = ["docker", "podman"];

/// Exit code of engines for failures of their own: no daemon, no such image, a wrong option.
const ENGINE_FAILED: i32 = 125;
/// PATH of programs in images that set none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Begins of the lines in which engines name a failure.
const ENGINE_ERRORS: [&str; 3] = ["docker: ", "Error: ", "Error response from daemon: "];

/// Time in which an engine removes a container, or does not respond.
const REMOVED_WITHIN: Duration = Duration::from_secs(30);

pub(super) async fn run(
    config: &Map<String, Value>,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let order = Order::read(config)?;
    let name = container_name(cx.unit);
    remove(&order.engine, &name).await;
    let words = order.words(&name, cx.names.iter().map(|(name, _)| *name));
    let argv: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
    let program = Program {
        tool: TOOL,
        not_started: codes::CONTAINER_NOT_STARTED,
        argv,
        env: &order.env,
        unset: &[],
        cwd: None,
        copies: None,
    };
    let ended = program.run(cx, halt.clone()).await;
    if halt.is_requested() {
        remove(&order.engine, &name).await;
    }
    read_result(&order.engine, ended?)
}

/// Reads the result of a command of an engine, which has an exit code for its own failures.
pub(super) fn read_result(engine: &str, mut ended: Ended) -> Result<Value, Box<Failure>> {
    if ended.status.code() != Some(ENGINE_FAILED) {
        return shell::read_result(ended);
    }
    let (stderr, _) = ended.err.text(ERROR_TAIL_MAX);
    let reason = engine_reason(&stderr).map_or_else(|| "it gave no reason".to_owned(), shown);
    let message = format!("{engine} could not run the container (exit code {ENGINE_FAILED}): {reason}");
    let mut failed = failure(codes::CONTAINER_ENGINE_FAILED, message);
    failed.details = json!({ "exit_code": ENGINE_FAILED, "stderr": stderr });
    Err(failed)
}

/// Returns the line in which an engine names its failure. Lines about a download may come before, and hints follow.
fn engine_reason(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let names = |line: &&str| ENGINE_ERRORS.iter().any(|begin| line.starts_with(begin));
    lines.clone().find(names).or_else(|| lines.next())
}

struct Order {
    engine: String,
    image: String,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    volumes: Vec<String>,
}

impl Order {
    fn read(config: &Map<String, Value>) -> Result<Order, Box<Failure>> {
        let fields = Fields::of(Tool::Container, config)?;
        let Some(image) = fields.text("image")? else {
            return Err(invalid("container needs `image`, a text"));
        };
        if image.starts_with('-') {
            return Err(invalid(format!("`image` of container is no name of an image: `{}`", shown(&image))));
        }
        Ok(Order {
            engine: engine(fields.text("engine")?)?,
            image,
            command: command(fields)?,
            env: fields.env()?,
            cwd: fields.text("cwd")?,
            volumes: volumes(fields)?,
        })
    }

    /// Returns the command line. It has no values of variables, because other users can see it.
    fn words(&self, name: &str, names: impl Iterator<Item = &'static str>) -> Vec<String> {
        let mut words: Vec<String> =
            [&self.engine, "run", "--rm", "--init", "--name", name].map(str::to_owned).to_vec();
        for variable in self.env.keys().cloned().chain(names.map(str::to_owned)) {
            words.extend(["--env".to_owned(), variable]);
        }
        for volume in &self.volumes {
            words.extend(["--volume".to_owned(), volume.clone()]);
        }
        words.extend(self.cwd.iter().flat_map(|cwd| ["--workdir".to_owned(), cwd.clone()]));
        words.push(self.image.clone());
        words.extend(self.command.iter().cloned());
        words
    }
}

/// Removes a container that its engine still has. Usually there is none, which is not an error.
pub(super) async fn remove(engine: &str, name: &str) {
    let _ = timeout(REMOVED_WITHIN, engine_command(engine, &["rm", "--force", name]).status()).await;
}

/// Creates a command of an engine that does not run a program. It ends when it is dropped.
fn engine_command(engine: &str, args: &[&str]) -> Command {
    let mut command = Command::new(engine);
    command.args(args).kill_on_drop(true);
    for variable in withheld_variables() {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the PATH of an image, which is pulled if the engine does not have it. Returns None if the engine does not report it, for a
/// reason that it reports when it runs the image.
pub(super) async fn find_path(engine: &str, image: &str) -> Option<String> {
    if let Some(path) = inspect_path(engine, image).await {
        return Some(path);
    }
    let pulled = output(engine, &["pull", "--quiet", image]).await?;
    // An image of a layout has no name, only the id that the engine prints last.
    inspect_path(engine, pulled.lines().last()?.trim()).await
}

async fn inspect_path(engine: &str, image: &str) -> Option<String> {
    let found = output(engine, &["image", "inspect", "--format", "{{json .Config.Env}}", image]).await?;
    let variables: Option<Vec<String>> = serde_json::from_str(&found).ok()?;
    let path = variables.iter().flatten().find_map(|variable| variable.strip_prefix("PATH="));
    Some(path.unwrap_or(DEFAULT_PATH).to_owned())
}

async fn output(engine: &str, args: &[&str]) -> Option<String> {
    let ended = engine_command(engine, args).stdout(Stdio::piped()).output().await.ok()?;
    ended.status.success().then(|| String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Returns the name, which is the same on all attempts of a step-run, so that an attempt removes the container of an
/// earlier one.
pub(super) fn container_name(unit: Unit) -> String {
    format!("windlass-{:032x}-{}", unit.execution, unit.run)
}

fn engine(named: Option<String>) -> Result<String, Box<Failure>> {
    match named {
        Some(name) if !ENGINES.contains(&name.as_str()) => {
            Err(invalid(format!("`engine` of container is docker or podman, not `{}`", shown(&name))))
        }
        Some(name) if is_installed(&name) => Ok(name),
        Some(name) => Err(missing(&format!("`{name}` is not"))),
        None => match find_engine() {
            Some(name) => Ok(name.to_owned()),
            None => Err(missing("neither `docker` nor `podman` is")),
        },
    }
}

/// Returns the first engine that is installed.
pub(super) fn find_engine() -> Option<&'static str> {
    ENGINES.into_iter().find(|name| is_installed(name))
}

fn missing(what: &str) -> Box<Failure> {
    let message =
        format!("{what} installed on this worker; install it to run containers, or use `kind: shell`");
    failure(codes::CONTAINER_ENGINE_MISSING, message)
}

pub(super) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn command(fields: Fields<'_>) -> Result<Vec<String>, Box<Failure>> {
    match fields.given("command") {
        None => Ok(Vec::new()),
        Some(Value::String(script)) => Ok(vec!["sh".to_owned(), "-c".to_owned(), script.clone()]),
        Some(Value::Array(words)) => Ok(words.iter().map(plain).collect()),
        Some(other) => Err(fields.is_not("command", "a list of words or a text", other)),
    }
}

fn volumes(fields: Fields<'_>) -> Result<Vec<String>, Box<Failure>> {
    let Some(given) = fields.given("volumes") else { return Ok(Vec::new()) };
    let refused = || fields.is_not("volumes", "a list of texts `FOLDER:PATH`", given);
    let text = |volume: &Value| {
        volume.as_str().filter(|text| text.contains(':') && !text.starts_with('-')).map(str::to_owned)
    };
    given.as_array().ok_or_else(refused)?.iter().map(|volume| text(volume).ok_or_else(refused)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_an_engine_is_the_line_that_names_it() {
        let no_daemon = "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n\nRun 'docker run --help' for more information\n";
        let reason =
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?";
        assert_eq!(engine_reason(no_daemon), Some(reason));
        let no_image =
            "Unable to find image 'x:1' locally\ndocker: Error response from daemon: pull access denied\n";
        assert_eq!(engine_reason(no_image), Some("docker: Error response from daemon: pull access denied"));
        assert_eq!(
            engine_reason("Trying to pull x:1...\nError: no such image\n"),
            Some("Error: no such image")
        );
        assert_eq!(engine_reason("\nsomething else\nRun 'x --help'\n"), Some("something else"));
        assert_eq!(engine_reason(""), None);
    }
}
