//! `windlass schedules create`: creates a schedule from a file, or for a definition from options.

use crate::api::Client;
use crate::commands::report::{print_json, text};
use crate::commands::run::Inputs;
use crate::commands::source::Source;
use crate::exit::Usage;
use crate::progress::say;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use windlass_dialects::compile;
use windlass_server::settings::Retention;
use windlass_server::settings::retention;

/// Create a schedule
///
/// The schedule is a file (-f), or a definition with its time: a workflow by its name or id, or a file, which is
/// registered first.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The schedule, YAML or JSON; `-` reads standard input
    #[arg(short = 'f', long = "file", value_name = "FILE", required_unless_present = "definition")]
    file: Option<PathBuf>,
    /// The target: the name or the id of a workflow, or the file of a definition
    #[arg(value_name = "DEFINITION", conflicts_with = "file", requires = "times")]
    definition: Option<String>,
    #[command(flatten)]
    times: Times,
    /// Name of the schedule; by default the name of the workflow
    #[arg(long, conflicts_with = "file")]
    name: Option<String>,
    /// Time zone of --cron, as in Europe/Berlin; UTC by default
    #[arg(long = "tz", value_name = "ZONE", conflicts_with_all = ["every", "at", "file"])]
    zone: Option<String>,
    #[command(flatten)]
    inputs: Inputs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(id = "times", multiple = false)]
struct Times {
    /// A cron expression
    #[arg(long, value_name = "EXPR", conflicts_with = "file")]
    cron: Option<String>,
    /// The time between two runs, as in 90s, 15m or 6h; the first one begins at once
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    every: Option<String>,
    /// One time, as in 2030-01-31T06:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    at: Option<String>,
}

impl Create {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let request = client.request(Method::POST, &["schedules"]);
        let made = match (&self.file, &self.definition) {
            (Some(file), _) => client.json(request.definition(&Source::read(file)?.text))?,
            (None, definition) => {
                let definition = definition.as_deref().unwrap_or_default();
                client.json(request.json(&self.document(client, definition)?))?
            }
        };
        if self.json {
            return print_json(&made);
        }
        writeln!(stdout(), "{}", text(&made, "id"))?;
        let (name, next) = (text(&made, "name"), text(&made, "next_run_at"));
        say(&format!("schedule `{name}` is created; its next run is at {next}"));
        Ok(())
    }

    fn document(&self, client: &Client, definition: &str) -> anyhow::Result<Value> {
        let times = self.times.to_json()?;
        let path = Path::new(definition);
        let workflow = match path.is_file() {
            true => register(client, path)?,
            false => definition.to_owned(),
        };
        let inputs = self.inputs.over(json!({}))?;
        let mut document = json!({
            "name": self.name.as_ref().unwrap_or(&workflow),
            "schedule": times,
            "target": { "kind": "workflow", "workflow_id": workflow, "input": inputs },
        });
        if let Some(zone) = &self.zone {
            document["timezone"] = json!(zone);
        }
        Ok(document)
    }
}

impl Times {
    fn to_json(&self) -> Result<Value, Usage> {
        match (&self.cron, &self.every, &self.at) {
            (Some(expr), _, _) => Ok(json!({ "kind": "cron", "expr": expr })),
            (_, Some(every), _) => match retention(every) {
                Ok(Retention::For(time)) if time.subsec_nanos() == 0 && !time.is_zero() => {
                    Ok(json!({ "kind": "interval", "every_seconds": time.as_secs() }))
                }
                _ => Err(Usage::new(format!(
                    "--every must be a time in seconds or more, as in 15m, not `{every}`"
                ))),
            },
            (_, _, Some(at)) => Ok(json!({ "kind": "once", "at": at })),
            (None, None, None) => Err(Usage::new("the time of the schedule is missing")
                .hint("add --cron EXPR, --every TIME or --at TIME")),
        }
    }
}

/// Registers a definition under its own name, unless its newest version is the same. Returns the name.
fn register(client: &Client, file: &Path) -> anyhow::Result<String> {
    let source = Source::read(file)?;
    let unnamed = || {
        let message = format!("{} has no name, which a schedule needs to start it", source.shown);
        Usage::new(message).hint("add a name to the definition, or check it with `windlass validate`")
    };
    let name = compile(&source.text).name.ok_or_else(unnamed)?;
    let request = client.request(Method::PUT, &["workflows"]).query(&[("name", &name)]);
    let registered = client.json(request.definition(&source.text))?;
    say(&format!("workflow `{name}`, version {}, is registered", registered["version"]));
    Ok(name)
}
