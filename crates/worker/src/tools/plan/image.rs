//! Steps in containers, run with docker or podman. The scratch dir and the work dir have the same paths inside, so that
//! variables with these paths are correct in both places.

use super::super::container;
use super::super::{ToolContext, container::container_name};
use super::inputs::{InputValue, ResolvedInput, plain_text, text_of};
use super::place::{StepPlace, certificates};
use crate::failure::{failure, invalid};
use crate::halt::Halt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windlass_protocol::{Failure, codes};

/// Variables that the program in the container has and the container engine must not have: the engine keeps images,
/// credentials and its state in the HOME of the worker, and has the PATH of the worker. All are paths, and no secrets.
const INSIDE_ONLY: [&str; 2] = ["HOME", "TMPDIR"];

/// Puts the bin dir of the execution in front of the image's own PATH, then runs the command. The command of an image itself
/// gets the whole PATH as a variable, because the image may have no shell.
const WITH_BIN_DIR: &str = "PATH=\"$SIGNADOT_PLAN_EXECUTION_BINDIR:$PATH\"; export PATH; exec \"$@\"";

#[derive(Debug)]
pub(super) struct Image {
    pub(super) name: String,
    /// None: the command of the image.
    pub(super) command: Option<Vec<String>>,
}

/// Returns the command that runs a script.
pub(super) fn script_command(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

impl Image {
    /// Returns the image and the command of the built-in action.
    pub(super) fn of_inputs(inputs: &[ResolvedInput]) -> Result<Image, Box<Failure>> {
        let name = text_of(inputs, "image").unwrap_or_default();
        let command = inputs.iter().find(|input| input.name == "command").map(|input| &input.value);
        let command = match command {
            None | Some(InputValue::Inline(Value::Null)) => None,
            Some(InputValue::Inline(Value::Array(words))) => Some(words.iter().map(plain_text).collect()),
            Some(InputValue::Inline(Value::String(script))) => Some(script_command(script)),
            Some(_) => return Err(invalid("`command` is a list of words, or a text for sh")),
        };
        Ok(Image { name, command })
    }

    pub(super) async fn run(
        &self,
        place: &StepPlace,
        env: &BTreeMap<String, String>,
        cx: &ToolContext,
        mut halt: Halt,
    ) -> Result<Value, Box<Failure>> {
        if self.name.is_empty() || self.name.starts_with('-') || self.name.contains(char::is_whitespace) {
            return Err(invalid(format!(
                "`{}` is not a name of an image",
                crate::failure::shown(&self.name)
            )));
        }
        let layout = cached(&place.cache, &self.name).filter(|_| container::is_installed("podman"));
        let engine = if layout.is_some() { Some("podman") } else { container::find_engine() };
        let engine = engine.ok_or_else(no_engine)?;
        let name = container_name(cx.unit);
        container::remove(engine, &name).await;
        let mut passed = env.clone();
        passed.remove("PATH");
        let mut inside: Vec<(&str, String)> =
            INSIDE_ONLY.iter().filter_map(|name| Some((*name, passed.remove(*name)?))).collect();
        let reference = self.reference(layout.as_deref());
        if self.command.is_none() {
            let path = tokio::select! {
                path = container::find_path(engine, &reference) => path,
                _ = halt.requested() => None,
            };
            inside.extend(path.map(|path| ("PATH", format!("{}:{path}", place.bin().display()))));
        }
        let own = cx.names.iter().map(|(name, _)| *name);
        let variables = passed.keys().map(String::as_str).chain(own);
        let words = self.words(engine, &name, place, &inside, variables, reference);
        let argv: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
        let ended = place.program(argv, &passed).run(cx, halt.clone()).await;
        if halt.is_requested() {
            container::remove(engine, &name).await;
        }
        container::read_result(engine, ended?)
    }

    /// Returns what the engine runs: an image by its name, or a layout of the cache.
    fn reference(&self, layout: Option<&Path>) -> String {
        layout.map_or_else(|| self.name.clone(), |layout| format!("oci:{}", layout.display()))
    }

    /// Returns the command line. Of variables it has only the paths in `inside` as values, because other users can see it.
    fn words<'n>(
        &self,
        engine: &str,
        name: &str,
        place: &StepPlace,
        inside: &[(&str, String)],
        variables: impl Iterator<Item = &'n str>,
        reference: String,
    ) -> Vec<String> {
        let mut words: Vec<String> =
            [engine, "run", "--rm", "--init", "--name", name].map(str::to_owned).to_vec();
        // Files in the work dir belong to the user of the worker.
        words.push(match engine {
            "podman" => "--userns=keep-id".to_owned(),
            _ => format!(
                "--user={}:{}",
                rustix::process::getuid().as_raw(),
                rustix::process::getgid().as_raw()
            ),
        });
        for (variable, path) in inside {
            words.extend(["--env".to_owned(), format!("{variable}={path}")]);
        }
        for variable in variables {
            words.extend(["--env".to_owned(), variable.to_owned()]);
        }
        let mounts = [(&place.scratch, ""), (&place.dir, ""), (&place.cache, ":ro")];
        let certificates = certificates();
        let certificates = certificates.iter().map(|file| (file, ":ro"));
        for (path, mode) in mounts.into_iter().chain(certificates) {
            words.extend(["--volume".to_owned(), format!("{0}:{0}{mode}", path.display())]);
        }
        words.extend(["--workdir".to_owned(), place.dir.display().to_string()]);
        if self.command.is_some() {
            words.extend(["--entrypoint", "sh"].map(str::to_owned));
        }
        words.push(reference);
        if let Some(command) = &self.command {
            words.extend(["-c", WITH_BIN_DIR, "sh"].map(str::to_owned));
            words.extend(command.iter().cloned());
        }
        words
    }
}

/// Returns the OCI layout of an image that is named by its digest, if the cache has it.
fn cached(cache: &Path, image: &str) -> Option<PathBuf> {
    let (_, digits) = image.split_once("@sha256:")?;
    let is_digest = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let layout = cache.join("sha256").join(digits);
    (is_digest && layout.join("oci-layout").is_file()).then_some(layout)
}

fn no_engine() -> Box<Failure> {
    let message = "neither docker nor podman is installed on this worker; install one of them to run images";
    failure(codes::CONTAINER_ENGINE_MISSING, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pln_33_a_container_sees_the_scratch_dir_and_the_cache_comes_before_a_registry() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let place = StepPlace::for_test(&at("run"), at("images"));
        let digest = "a".repeat(64);
        let image = Image { name: format!("tools@sha256:{digest}"), command: Some(script_command("id")) };
        let home = [("HOME", "/w/home".to_owned())];
        let words = |engine: &str, layout: Option<&Path>| {
            image.words(engine, "c1", &place, &home, ["TOKEN"].into_iter(), image.reference(layout))
        };
        let line = words("docker", None).join(" ");
        let scratch = at("run/scratch").display().to_string();
        assert!(line.starts_with("docker run --rm --init --name c1 --user="), "{line}");
        assert!(line.contains(&format!("--volume {scratch}:{scratch} ")), "{line}");
        assert!(line.contains(&format!("{}:ro", at("images").display())), "the cache is read-only: {line}");
        assert!(
            line.contains("--env TOKEN ") && !line.contains("TOKEN="),
            "values stay out of the line: {line}"
        );
        assert!(line.contains("--env HOME=/w/home "), "the engine keeps its own HOME: {line}");
        assert!(
            line.ends_with(&format!("--entrypoint sh tools@sha256:{digest} -c {WITH_BIN_DIR} sh sh -c id"))
        );
        assert_eq!(cached(&place.cache, &image.name), None, "nothing is cached");
        let layout = at("images").join("sha256").join(&digest);
        std::fs::create_dir_all(&layout).expect("a folder");
        std::fs::write(layout.join("oci-layout"), "{}").expect("a file");
        assert_eq!(cached(&place.cache, &image.name).as_deref(), Some(&*layout));
        assert!(words("podman", Some(&layout)).contains(&format!("oci:{}", layout.display())));
        let own = Image { name: "nginx:1".to_owned(), command: None };
        let path = [("PATH", "/run/bin:/image/bin".to_owned())];
        let line =
            own.words("podman", "c1", &place, &path, std::iter::empty(), own.reference(None)).join(" ");
        assert!(line.contains(" --env PATH=/run/bin:/image/bin ") && line.ends_with(" nginx:1"), "{line}");
    }
}
