//! The work dir of a step: created before the program starts, with the inputs as files, and removed after it.

use super::super::source::blocking;
use super::super::{Desk, execution_of};
use super::inputs::{InputValue, ResolvedInput, plain_text};
use super::{outputs, unusable};
use crate::pool::whole::execution_folder;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

#[derive(Debug)]
pub(super) struct StepPlace {
    pub(super) scratch: PathBuf,
    /// The work dir.
    pub(super) dir: PathBuf,
    /// Copies of the streams of the program.
    pub(super) logs: PathBuf,
    pub(super) cache: PathBuf,
    /// Whether the folder of the execution is kept.
    is_kept: bool,
}

impl StepPlace {
    pub(super) async fn make(desk: &Desk) -> Result<StepPlace, Box<Failure>> {
        let folder = execution_folder(&desk.kit.folders, desk.unit);
        let place = StepPlace {
            scratch: folder.join("scratch"),
            dir: folder.join("steps").join(desk.step()),
            logs: folder.join("logs").join(desk.step()),
            cache: desk.kit.cache.join("images"),
            is_kept: desk.kit.keeps_workdirs,
        };
        let mut dirs = vec![place.bin(), place.logs.clone(), place.cache.clone()];
        dirs.extend(["context", "outputs", "home", "tmp"].map(|name| place.dir.join(name)));
        blocking(move || dirs.iter().try_for_each(|dir| private_dir(dir)))
            .await
            .map_err(|error| unusable(&error))?;
        Ok(place)
    }

    fn bin(&self) -> PathBuf {
        self.scratch.join("bin")
    }

    /// Writes the inputs. Values of secrets are on the disk only here, readable by this user only.
    pub(super) async fn write_inputs(
        &self,
        inputs: &[ResolvedInput],
        desk: &Desk,
    ) -> Result<(), Box<Failure>> {
        for input in inputs {
            let path = self.context_file(input);
            let body: Body = match &input.value {
                InputValue::Inline(value) if input.is_json => value.to_string().into_bytes().into(),
                InputValue::Inline(value) => plain_text(value).into_bytes().into(),
                InputValue::Artifact(key) => {
                    let loaded = desk.kit.claim.load_file(key).await?;
                    loaded.ok_or_else(|| crate::pipeline::not_available(key))?
                }
            };
            let written = blocking(move || match &body.file {
                Some(BodyFile::Moved(file)) => fs::rename(file, &path),
                Some(BodyFile::Shared(file)) => copy_file(file, &path),
                None => private_file(&path, 0o600, &body.bytes),
            });
            written.await.map_err(|error| unusable(&error))?;
        }
        Ok(())
    }

    fn context_file(&self, input: &ResolvedInput) -> PathBuf {
        let name = if input.is_json { format!("{}.json", input.name) } else { input.name.clone() };
        self.dir.join("context").join(name)
    }

    pub(super) async fn write_script(&self, script: &str) -> Result<PathBuf, Box<Failure>> {
        let path = self.dir.join(".script");
        let (to, text) = (path.clone(), script.as_bytes().to_vec());
        blocking(move || private_file(&to, 0o700, &text)).await.map_err(|error| unusable(&error))?;
        Ok(path)
    }

    /// Returns the variables that the worker sets. The rest of the environment is inherited, without the engine's
    /// secrets.
    pub(super) async fn environment(
        &self,
        desk: &Desk,
        routing: Option<&RoutingTarget>,
    ) -> Result<BTreeMap<String, String>, Box<Failure>> {
        let shown = |path: &Path| path.display().to_string();
        let bin = shown(&self.bin());
        let path = match std::env::var("PATH") {
            Ok(others) if !others.is_empty() => format!("{bin}:{others}"),
            _ => format!("{bin}:/usr/local/bin:/usr/bin:/bin"),
        };
        let variables = [
            ("SIGNADOT_PLAN_EXECUTION_ID", execution_of(desk)),
            ("SIGNADOT_PLAN_STEP_ID", desk.step().to_owned()),
            ("SIGNADOT_PLAN_WORKDIR", shown(&self.dir)),
            ("SIGNADOT_PLAN_EXECUTION_SCRATCHDIR", shown(&self.scratch)),
            ("SIGNADOT_PLAN_EXECUTION_BINDIR", bin.clone()),
            ("SIGNADOT_PLAN_BINDIR", bin),
            ("SIGNADOT_CACHE_DIR", shown(&self.cache)),
            ("HOME", shown(&self.dir.join("home"))),
            ("TMPDIR", shown(&self.dir.join("tmp"))),
            ("SSL_CERT_FILE", certificates()),
            ("PATH", path),
        ];
        let mut env: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if let Some(target) = routing {
            let named = [
                ("SIGNADOT_SANDBOX_NAME", &target.sandbox),
                ("SIGNADOT_ROUTEGROUP_NAME", &target.route_group),
                ("SIGNADOT_ROUTING_KEY", &desk.routing_key(target).await?),
            ];
            let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
            env.extend(named);
        }
        Ok(env)
    }

    /// Returns the output of the program on its streams, after secrets were removed.
    pub(super) async fn captured_logs(&self, desk: &Desk) -> Result<Vec<StepLog>, Box<Failure>> {
        let mut logs = Vec::new();
        for stream in STREAMS {
            let path = self.logs.join(stream);
            let bytes = blocking(move || fs::read(path)).await;
            let bytes = match bytes {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                other => other.map_err(|error| unusable(&error))?,
            };
            let value = outputs::text_or_artifact(bytes, desk).await?;
            logs.push(StepLog { stream: stream.to_owned(), value });
        }
        Ok(logs)
    }

    /// Removes the work dir. One that is kept loses the files with secrets.
    pub(super) async fn remove(&self, inputs: &[ResolvedInput]) {
        let secrets: Vec<PathBuf> =
            inputs.iter().filter(|input| input.is_secret).map(|input| self.context_file(input)).collect();
        let (dir, is_kept) = (self.dir.clone(), self.is_kept);
        let removed = blocking(move || {
            // A program in a container may have created a link there that leads out of the container.
            if fs::symlink_metadata(dir.join("context")).is_ok_and(|context| context.is_dir()) {
                secrets.iter().for_each(|path| drop(fs::remove_file(path)));
            }
            if is_kept { Ok(()) } else { fs::remove_dir_all(&dir) }
        });
        // Files that cannot be removed now are removed with the folder of the execution.
        if let Err(error) = removed.await {
            tracing::debug!(%error, dir = %self.dir.display(), "the work dir of a step is left for later");
        }
    }
}

#[cfg(test)]
impl StepPlace {
    pub(super) fn for_test(scratch: PathBuf, dir: PathBuf, cache: PathBuf) -> StepPlace {
        StepPlace { scratch, logs: dir.join("logs"), dir, cache, is_kept: false }
    }
}

impl Desk {
    /// Stores the captured streams for the report.
    pub(super) fn note_logs(&self, logs: Vec<StepLog>) {
        let empty = |stream: &str| StepLog { stream: stream.to_owned(), value: json!("") };
        let logs = if logs.is_empty() { STREAMS.map(empty).to_vec() } else { logs };
        self.note(windlass_protocol::PlanStep::LOGS, json!(logs));
    }
}

fn certificates() -> String {
    let own = std::env::var("SSL_CERT_FILE").ok().filter(|own| !own.is_empty());
    own.unwrap_or_else(|| {
        let found = CERTIFICATES.iter().find(|path| Path::new(path).is_file());
        (*found.unwrap_or(&CERTIFICATES[0])).to_owned()
    })
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(dir)
}

/// Copies a file. A link is not enough, because the program may change its input.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut File::open(from)?, &mut copy).map(drop)
}

fn private_file(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}
