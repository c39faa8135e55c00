//! Packages of python code: an environment of their own, created once and stored under the digest of their names.

use crate::failure::{failure, shown};
use crate::halt::Halt;
use crate::tools::ToolContext;
use crate::tools::program::{ERROR_TAIL_MAX, Ended, Program};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use windlass_artifact::{digest, key_of};
use windlass_protocol::{Failure, Stream, Tool, codes};

const TOOL: &str = Tool::Python.kind();

/// Returns the interpreter that has the packages.
pub(super) async fn python(
    packages: &[String],
    cx: &ToolContext,
    halt: Halt,
) -> Result<PathBuf, Box<Failure>> {
    let cache = cx.kit.cache.join("venvs");
    own_folder(&cx.kit.cache).and_then(|()| own_folder(&cache)).map_err(|error| unusable(&cache, &error))?;
    let place = cache.join(digest(&key_of(packages.join("\n").as_bytes())).unwrap_or_default());
    let interpreter = place.join("bin/python");
    // A second caller waits for the first and finds the environment.
    let _making = cx.kit.venvs.lock().await;
    if interpreter.exists() {
        return Ok(interpreter);
    }
    let said = format!("installing {} with pip", packages.join(", "));
    cx.lines.send(Stream::Worker, vec![said]).await;
    make(&cache, &place, packages, cx, halt).await?;
    Ok(interpreter)
}

/// Creates it in a temporary folder and moves it into place when it is complete.
async fn make(
    cache: &Path,
    place: &Path,
    packages: &[String],
    cx: &ToolContext,
    halt: Halt,
) -> Result<(), Box<Failure>> {
    let made = tempfile::Builder::new().prefix("making-").tempdir_in(cache);
    let made = made.map_err(|error| unusable(cache, &error))?;
    let folder = made.path().join("venv");
    let made_folder = ended(&["python3", "-m", "venv"], &[folder.as_os_str()], cx, halt.clone()).await?;
    if let Some(words) = error_output(made_folder) {
        let message = format!(
            "python3 cannot make an environment for packages: {words}; install its module venv (Debian: python3-venv)"
        );
        return Err(failure(codes::INVALID_CONFIGURATION, message));
    }
    let python = folder.join("bin/python").display().to_string();
    let pip = [&python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--"];
    let packages_given: Vec<&OsStr> = packages.iter().map(OsStr::new).collect();
    let installed = ended(&pip, &packages_given, cx, halt).await?;
    if let Some(words) = error_output(installed) {
        let message = format!(
            "pip could not install {}: {words}; can this worker reach the package index?",
            shown(&packages.join(", "))
        );
        let mut failed = failure(codes::DEPENDENCIES_NOT_INSTALLED, message);
        failed.retryable = Some(true);
        return Err(failed);
    }
    fs::rename(&folder, place).map_err(|error| unusable(place, &error))
}

async fn ended(
    command: &[&str],
    rest: &[&OsStr],
    cx: &ToolContext,
    halt: Halt,
) -> Result<Ended, Box<Failure>> {
    let argv = command.iter().map(OsStr::new).chain(rest.iter().copied()).collect();
    let env = BTreeMap::new();
    let program = Program {
        tool: TOOL,
        not_started: codes::CODE_NOT_STARTED,
        argv,
        env: &env,
        unset: &[],
        cwd: None,
        copies: None,
    };
    program.run(cx, halt).await
}

/// Returns the last lines of the output of a command that failed.
fn error_output(ended: Ended) -> Option<String> {
    let Ended { status, mut out, mut err } = ended;
    if status.success() {
        return None;
    }
    let output = [err.text(ERROR_TAIL_MAX).0, out.text(ERROR_TAIL_MAX).0];
    let words = output.iter().flat_map(|text| text.lines().rev()).find(|line| !line.trim().is_empty());
    Some(words.map_or_else(|| format!("{status}"), shown))
}

/// Checks that other users cannot write to the folder: code of nodes imports packages from it.
fn own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)?;
    let found = fs::metadata(path)?;
    if found.uid() != rustix::process::getuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(io::Error::other("others than this user can write there"));
    }
    Ok(())
}

fn unusable(path: &Path, error: &io::Error) -> Box<Failure> {
    let message = format!("the folder for packages, {}, cannot be used: {error}", path.display());
    failure(codes::CODE_NOT_STARTED, message)
}
