//! `windlass plans run`

use super::{create, get};
use crate::api::{ApiError, Client};
use crate::commands::report::{print_json, text};
use crate::commands::run::ending::{Ending, EndingOptions, Waited};
use crate::commands::source::Source;
use crate::exit::{self, Usage};
use crate::format::plain;
use crate::progress::say;
use crate::{ids, signals};
use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

/// Bytes of an output that are read at a time.
const PART: u64 = 4 << 20;

/// Run a plan on a group of workers
///
/// PLAN is the id of a plan, or a file, which is created first. The execution continues when the command ends, also with
/// Ctrl-C while it waits.
#[derive(Debug, clap::Args)]
pub struct RunPlan {
    #[arg(value_name = "PLAN")]
    plan: String,
    /// A parameter; VALUE is a string if the plan declares one or no schema, or if it is not JSON, else JSON
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// A parameter whose value is a stored secret
    #[arg(long = "param-secret", value_name = "NAME=SECRET")]
    secrets: Vec<String>,
    /// The cluster, unless the plan determines it
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The group of workers, unless the plan sets it
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// Wait for the end
    #[arg(long)]
    wait: bool,
    /// Wait for the end and write the outputs of the plan as files into this folder
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl RunPlan {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        if !client.is_server() {
            let hint = format!(
                "run it in this process with `windlass run {}`, or start `windlass serve`",
                self.plan
            );
            return Err(Usage::new("plans run on workers of a server, and none uses this data folder")
                .hint(hint)
                .into());
        }
        if let Some(folder) = &self.output_dir {
            prepare(folder)?;
        }
        let plan = self.plan(client)?;
        let mut spec = Map::from_iter([("planID".to_owned(), plan["id"].clone())]);
        spec.insert("params".to_owned(), Value::Object(self.params(&plan)?));
        spec.insert("secrets".to_owned(), Value::Object(self.secrets()?));
        for (field, value) in [("cluster", &self.cluster), ("runner", &self.runner)] {
            spec.extend(value.iter().map(|value| (field.to_owned(), json!(value))));
        }
        let created = client.send(Method::POST, &["plan-executions"], &json!({ "spec": spec }))?;
        let id = text(&created, "id").to_owned();
        if !self.wait && self.output_dir.is_none() {
            match self.json {
                true => print_json(&created)?,
                false => writeln!(stdout(), "{id}")?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        hint_at_workers(client, &created["spec"]);
        let signals = signals::listen().context("cannot listen to signals")?;
        let ending = Ending { client, json: self.json, shows: EndingOptions::default() };
        let statuses = match ending.wait(&[ids::parse(&id)?], &signals)? {
            Waited::Rested(statuses) => statuses,
            Waited::Interrupted(signal) => return Ok(ExitCode::from(exit::of_signal(signal))),
        };
        let ended = client.get(&["plan-executions", &id], &[])?;
        if let Some(folder) = &self.output_dir {
            download(client, &ended, folder)?;
        }
        match self.json {
            true => print_json(&ended)?,
            false => report(&ended)?,
        }
        let phase = text(&ended["status"], "phase");
        let waits = statuses.iter().any(|status| status == "paused");
        Ok(ExitCode::from(exit::of_status(if waits { "paused" } else { phase })))
    }

    /// Returns the plan with an id, or creates the plan of a file.
    fn plan(&self, client: &Client) -> anyhow::Result<Value> {
        let path = Path::new(&self.plan);
        let is_file = self.plan == "-" || path.exists();
        match self.plan.starts_with("pl_") && !is_file {
            true => get(client, &self.plan),
            false => create(client, &Source::read(path)?),
        }
    }

    fn params(&self, plan: &Value) -> Result<Map<String, Value>, Usage> {
        let declared = plan["spec"]["params"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut params = Map::new();
        for given in &self.params {
            let (name, value) = pair("--param", given)?;
            let is_text = declared.iter().find(|param| param["name"] == name).is_some_and(is_text);
            let parsed = if is_text { None } else { serde_json::from_str(value).ok() };
            params.insert(name.to_owned(), parsed.unwrap_or_else(|| value.into()));
        }
        Ok(params)
    }

    fn secrets(&self) -> Result<Map<String, Value>, Usage> {
        let pairs = self.secrets.iter().map(|given| pair("--param-secret", given));
        pairs.map(|pair| pair.map(|(name, secret)| (name.to_owned(), secret.into()))).collect()
    }
}

/// Returns whether values of a parameter are texts. Without a schema they are, unless its default is another value.
fn is_text(param: &Value) -> bool {
    match param.get("schema") {
        Some(schema) => schema["type"] == "string",
        None => param.get("default").is_none_or(Value::is_string),
    }
}

fn pair<'a>(flag: &str, given: &'a str) -> Result<(&'a str, &'a str), Usage> {
    let found = given.split_once('=').filter(|(name, _)| !name.is_empty());
    found.ok_or_else(|| Usage::new(format!("`{flag} {}`: write NAME=VALUE", plain(given))))
}

/// Says what to start if no worker can take the execution now. The execution exists already, so a failed request is no error.
fn hint_at_workers(client: &Client, spec: &Value) {
    let (group, cluster) = (text(spec, "runner"), text(spec, "cluster"));
    let found = client.get(&["runner-groups", group], &[]);
    if found.is_ok_and(|found| found["workers"] == 0) {
        say(&format!(
            "no worker of the group `{group}` is connected; the execution waits for `windlass worker --server URL --group \
             {group} --cluster {cluster}`",
            group = plain(group),
            cluster = plain(cluster),
        ));
    }
}

/// Prints outputs to stdout, and failures to stderr.
fn report(ended: &Value) -> anyhow::Result<()> {
    let status = &ended["status"];
    let mut out = stdout().lock();
    for output in status["outputs"].as_array().into_iter().flatten() {
        let shown = match (&output["value"], output.get("artifact")) {
            (Value::String(value), _) => plain(value),
            (Value::Null, Some(artifact)) => format!("({} bytes)", artifact["size"]),
            (value, _) => value.to_string(),
        };
        writeln!(out, "{}: {shown}", plain(text(output, "name")))?;
    }
    for step in status["steps"].as_array().into_iter().flatten() {
        if let Some(error) = step["error"].as_str() {
            say(&format!("error: step {}: {}", plain(text(step, "id")), plain(error)));
        }
    }
    if let Some(error) = status["error"].as_str() {
        say(&format!("error: {}", plain(error)));
    }
    say(&format!("{} {}", text(ended, "id"), text(status, "phase")));
    Ok(())
}

/// Creates the folder for outputs and checks that files can be written to it, before an execution is started for them.
fn prepare(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let probe = folder.join(format!(".windlass-{}", std::process::id()));
    let written = File::create(&probe).and_then(|_| std::fs::remove_file(&probe));
    written.with_context(|| format!("cannot write to {}", folder.display()))
}

/// Writes each output of the plan to a file of its name.
fn download(client: &Client, ended: &Value, folder: &Path) -> anyhow::Result<()> {
    for output in ended["status"]["outputs"].as_array().into_iter().flatten() {
        let name = text(output, "name");
        // Names of outputs are identifiers; the server is another program.
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        {
            return Err(Usage::new(format!("`{}` is not a name for a file", plain(name))).into());
        }
        let path = folder.join(name);
        let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        copy_output(client, text(ended, "id"), name, &mut file)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Copies an output part by part, so that its size does not matter.
fn copy_output(client: &Client, id: &str, name: &str, file: &mut File) -> anyhow::Result<()> {
    let mut from = 0;
    loop {
        let range = format!("bytes={from}-{}", from + PART - 1);
        let path = ["plan-executions", id, "outputs", name];
        let part = match client.bytes(client.request(Method::GET, &path).with("range", range)) {
            Ok(part) => part,
            // A part of full length may be followed by another one.
            Err(ApiError::Refused(refusal)) if refusal.status == 416 => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        file.write_all(&part)?;
        from += part.len() as u64;
        if (part.len() as u64) < PART {
            return Ok(file.sync_all()?);
        }
    }
}
