//! The work dir of a step: created before the program starts, with the inputs as files, and removed after it. Programs of
//! other steps run as the same user and may have prepared links or folders there, which are removed and never used.

use super::super::source::blocking;
use super::super::{ToolContext, execution_of};
use super::inputs::{InputValue, ResolvedInput, plain_text};
use super::outputs::{self, stored_file};
use super::unusable;
use crate::folder::{Folder, PRIVATE};
use crate::pool::whole::execution_folder;
use rustix::fs::Mode;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use windlass_protocol::{Body, BodyFile, Failure, RoutingTarget, StepLog};

/// Variables of the routing context. Those of the worker itself never reach a step.
pub(super) const ROUTING_VARIABLES: &[&str] =
    &["SIGNADOT_ROUTING_KEY", "SIGNADOT_SANDBOX_NAME", "SIGNADOT_ROUTEGROUP_NAME"];

/// Files with certificates of authorities, where systems have them.
const CERTIFICATES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// Streams and the names of their copies.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
const SCRIPT: &str = ".script";

#[derive(Debug)]
pub(super) struct StepPlace {
    pub(super) scratch: PathBuf,
    /// The work dir.
    pub(super) dir: PathBuf,
    pub(super) cache: PathBuf,
    pub(super) folders: StepFolders,
    /// Whether the folder of the execution is kept.
    is_kept: bool,
}

/// Folders as they were created for the step. A program may have moved or replaced them since.
#[derive(Debug, Clone)]
pub(super) struct StepFolders {
    /// Work dirs of all steps.
    steps: Folder,
    pub(super) dir: Folder,
    context: Folder,
    /// Copies of the streams of the program.
    pub(super) logs: Folder,
}

/// A captured stream.
enum CapturedLog {
    Text(String),
    /// The key and the length of a file that is too long for the report.
    File(String, u64),
}

impl StepPlace {
    pub(super) async fn make(cx: &ToolContext) -> Result<StepPlace, Box<Failure>> {
        let (kit, step) = (&cx.kit, cx.step().to_owned());
        let folder = execution_folder(&kit.folders, cx.unit);
        let (scratch, dir) = (folder.join("scratch"), folder.join("steps").join(&step));
        let (cache, is_kept) = (kit.cache.join("images"), kit.keeps_workdirs);
        let images = cache.clone();
        let made = blocking(move || {
            DirBuilder::new().mode(0o700).recursive(true).create(images)?;
            StepFolders::make(&folder, &step)
        });
        let folders = made.await.map_err(|error| unusable(&error))?;
        Ok(StepPlace { scratch, dir, cache, folders, is_kept })
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.scratch.join("bin")
    }

    /// Writes the inputs. Values of secrets are on the disk only here, readable by this user only.
    pub(super) async fn write_inputs(
        &self,
        inputs: &[ResolvedInput],
        cx: &ToolContext,
    ) -> Result<(), Box<Failure>> {
        for input in inputs {
            let (context, name) = (self.folders.context.clone(), file_name(input));
            let body: Body = match &input.value {
                InputValue::Inline(value) if input.is_json => value.to_string().into_bytes().into(),
                InputValue::Inline(value) => plain_text(value).into_bytes().into(),
                InputValue::Artifact(stored) => {
                    let loaded = cx.kit.claim.load_file(&stored.key).await?;
                    loaded.ok_or_else(|| crate::pipeline::not_available(&stored.key))?
                }
            };
            let written = blocking(move || match &body.file {
                Some(BodyFile::Moved(file)) => context.take_file(file, &name),
                // A link is not enough, because the program may change its input.
                Some(BodyFile::Shared(file)) => {
                    io::copy(&mut File::open(file)?, &mut context.create_file(&name, PRIVATE)?).map(drop)
                }
                None => context.create_file(&name, PRIVATE)?.write_all(&body.bytes),
            });
            written.await.map_err(|error| unusable(&error))?;
        }
        Ok(())
    }

    pub(super) async fn write_script(&self, script: &str) -> Result<PathBuf, Box<Failure>> {
        let (dir, text) = (self.folders.dir.clone(), script.as_bytes().to_vec());
        let written = blocking(move || dir.create_file(SCRIPT, Mode::RWXU)?.write_all(&text));
        written.await.map_err(|error| unusable(&error))?;
        Ok(self.dir.join(SCRIPT))
    }

    /// Returns the variables that the worker sets. The rest of the environment is inherited, without the engine's
    /// secrets.
    pub(super) async fn environment(
        &self,
        cx: &ToolContext,
        routing: Option<&RoutingTarget>,
    ) -> Result<BTreeMap<String, String>, Box<Failure>> {
        let shown = |path: &Path| path.display().to_string();
        let bin = shown(&self.bin());
        let path = match std::env::var("PATH") {
            Ok(others) if !others.is_empty() => format!("{bin}:{others}"),
            _ => format!("{bin}:/usr/local/bin:/usr/bin:/bin"),
        };
        let variables = [
            ("SIGNADOT_PLAN_EXECUTION_ID", execution_of(cx)),
            ("SIGNADOT_PLAN_STEP_ID", cx.step().to_owned()),
            ("SIGNADOT_PLAN_WORKDIR", shown(&self.dir)),
            ("SIGNADOT_PLAN_EXECUTION_SCRATCHDIR", shown(&self.scratch)),
            ("SIGNADOT_PLAN_EXECUTION_BINDIR", bin.clone()),
            ("SIGNADOT_PLAN_BINDIR", bin),
            ("SIGNADOT_CACHE_DIR", shown(&self.cache)),
            ("HOME", shown(&self.dir.join("home"))),
            ("TMPDIR", shown(&self.dir.join("tmp"))),
            ("PATH", path),
        ];
        let certificates = certificates().map(|file| ("SSL_CERT_FILE", shown(&file)));
        let mut env: BTreeMap<String, String> =
            variables.into_iter().chain(certificates).map(|(name, value)| (name.to_owned(), value)).collect();
        if let Some(target) = routing {
            let named = [
                ("SIGNADOT_SANDBOX_NAME", &target.sandbox),
                ("SIGNADOT_ROUTEGROUP_NAME", &target.route_group),
                ("SIGNADOT_ROUTING_KEY", &cx.routing_key(target).await?),
            ];
            let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
            env.extend(named);
        }
        Ok(env)
    }

    /// Returns the output of the program on its streams, after secrets were removed. A long one is streamed into an
    /// artifact.
    pub(super) async fn captured_logs(&self, cx: &ToolContext) -> Result<Vec<StepLog>, Box<Failure>> {
        let mut logs = Vec::new();
        for stream in STREAMS {
            let (folder, text_max) = (self.folders.logs.clone(), cx.inline_bytes as u64);
            let captured = blocking(move || read_log(&folder, stream, text_max)).await;
            let value = match captured.map_err(|error| unusable(&error))? {
                CapturedLog::Text(text) => json!(text),
                CapturedLog::File(key, length) => {
                    stored_file(key, length, &self.folders.logs, stream, cx).await?
                }
            };
            logs.push(StepLog { stream: stream.to_owned(), value });
        }
        Ok(logs)
    }

    /// Removes the work dir. One that is kept loses the files with secrets.
    pub(super) async fn remove(&self, inputs: &[ResolvedInput]) {
        let secrets: Vec<String> = inputs.iter().filter(|input| input.is_secret).map(file_name).collect();
        let (folders, is_kept) = (self.folders.clone(), self.is_kept);
        let step = self.dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let removed = blocking(move || {
            // First, so that a program that moved the folder elsewhere does not keep them.
            secrets.iter().for_each(|name| drop(folders.context.remove_file(name)));
            if is_kept { Ok(()) } else { folders.steps.remove(&step) }
        });
        // Files that cannot be removed now are removed with the folder of the execution.
        if let Err(error) = removed.await {
            tracing::debug!(%error, dir = %self.dir.display(), "the work dir of a step is left for later");
        }
    }
}

impl StepFolders {
    /// Creates the folders of a step, in that of its execution.
    fn make(execution: &Path, step: &str) -> io::Result<StepFolders> {
        let (Some(above), Some(name)) =
            (execution.parent(), execution.file_name().and_then(|name| name.to_str()))
        else {
            return Err(io::Error::other("the folder of the execution has no name"));
        };
        DirBuilder::new().mode(0o700).recursive(true).create(above)?;
        let execution = Folder::open(above)?.enter_or_create(name)?;
        execution.enter_or_create("scratch")?.enter_or_create("bin")?;
        let steps = execution.enter_or_create("steps")?;
        let dir = steps.create(step)?;
        let logs = execution.enter_or_create("logs")?.create(step)?;
        let context = dir.create("context")?;
        ["outputs", "home", "tmp"].iter().try_for_each(|name| dir.create(name).map(drop))?;
        Ok(StepFolders { steps, dir, context, logs })
    }
}

/// Returns the name of the file of an input in `context/`.
fn file_name(input: &ResolvedInput) -> String {
    if input.is_json { format!("{}.json", input.name) } else { input.name.clone() }
}

fn read_log(logs: &Folder, stream: &str, text_max: u64) -> io::Result<CapturedLog> {
    let Some(mut file) = logs.open_file(stream)? else { return Ok(CapturedLog::Text(String::new())) };
    if file.metadata()?.len() > text_max {
        let (key, length) = outputs::key_of_file(&mut file)?;
        return Ok(CapturedLog::File(key, length));
    }
    let mut bytes = Vec::new();
    file.take(text_max).read_to_end(&mut bytes)?;
    Ok(CapturedLog::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
impl StepPlace {
    /// Creates the place of the step `a` in the folder of an execution.
    pub(super) fn for_test(execution: &Path, cache: PathBuf) -> StepPlace {
        let folders = StepFolders::make(execution, "a").expect("folders");
        let (scratch, dir) = (execution.join("scratch"), execution.join("steps/a"));
        StepPlace { scratch, dir, cache, folders, is_kept: false }
    }
}

impl ToolContext {
    /// Stores the captured streams for the report.
    pub(super) fn note_logs(&self, logs: Vec<StepLog>) {
        let empty = |stream: &str| StepLog { stream: stream.to_owned(), value: json!("") };
        let logs = if logs.is_empty() { STREAMS.map(empty).to_vec() } else { logs };
        self.note(windlass_protocol::PlanStep::LOGS, json!(logs));
    }
}

/// Returns the file with the certificates of authorities, if the worker's system has one.
pub(super) fn certificates() -> Option<PathBuf> {
    let own = std::env::var_os("SSL_CERT_FILE").filter(|own| !own.is_empty()).map(PathBuf::from);
    let found = || CERTIFICATES.iter().map(PathBuf::from).find(|path| path.is_file());
    own.filter(|path| path.is_absolute() && path.is_file()).or_else(found)
}
