//! `windlass plans`: immutable graphs of steps, and their executions by groups of workers.

mod run;

use super::report::{print_json, print_pretty, text};
use super::schedules::{CAMEL_CASE, read_pages};
use super::source::Source;
use crate::api::{ApiTarget, Client, Need};
use crate::exit::Usage;
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use reqwest::Method;
use serde_json::Value;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass plans";

/// Create plans, and run them on groups of workers
///
/// `windlass run FILE` runs a plan in this process, without a server.
#[derive(Debug, clap::Args)]
pub struct Plans {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Get(Get),
    Run(run::RunPlan),
}

/// Create a plan; the same content has the same id
#[derive(Debug, clap::Args)]
struct Create {
    /// The plan, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List plans, the newest first
#[derive(Debug, clap::Args)]
struct List {
    /// Maximum number of plans
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show a plan
#[derive(Debug, clap::Args)]
struct Get {
    /// Id of the plan
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Plans {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        // Only a created plan creates the folder.
        if !matches!(self.command, Command::Create(_)) {
            self.target.check_exists()?;
        }
        let reads = matches!(self.command, Command::List(_) | Command::Get(_));
        let need = if reads { Need::Read } else { Need::Change };
        self.target.with((COMMAND, need), |client| self.run_with(client))
    }

    fn run_with(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        match &self.command {
            Command::Create(create) => create.run(client)?,
            Command::List(list) => list.run(client)?,
            Command::Get(get) => get.run(client)?,
            Command::Run(run) => return run.run(client),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn create(client: &Client, source: &Source) -> anyhow::Result<Value> {
    Ok(client.json(client.request(Method::POST, &["plans"]).definition(&source.text))?)
}

fn get(client: &Client, id: &str) -> anyhow::Result<Value> {
    client.get(&["plans", id], &[]).map_err(|error| {
        if !error.is_missing() {
            return error.into();
        }
        let hint = format!("`windlass plans list{}` shows them", client.flag());
        Usage::new(format!("there is no plan `{}`", plain(id))).hint(hint).into()
    })
}

impl Create {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let plan = create(client, &Source::read(&self.file)?)?;
        if self.json {
            return print_json(&plan);
        }
        writeln!(stdout(), "{}", text(&plan, "id"))?;
        say(&format!("run it with: {}{}", run_command(&plan), client.flag()));
        Ok(())
    }
}

/// Returns the command that runs a plan, with all options that the plan leaves to its caller.
fn run_command(plan: &Value) -> String {
    let spec = &plan["spec"];
    let mut command = format!("windlass plans run {}", text(plan, "id"));
    for param in spec["params"].as_array().into_iter().flatten() {
        if param["required"] == true && param.get("default").is_none() {
            command.push_str(&format!(" --param {}=VALUE", text(param, "name")));
        }
    }
    for (key, flag) in [("cluster", " --cluster NAME"), ("runner", " --runner GROUP")] {
        if spec[key].is_null() {
            command.push_str(flag);
        }
    }
    command
}

impl List {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let found = read_pages(client, &["plans"], &[], (CAMEL_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let mut out = stdout().lock();
        for plan in found["items"].as_array().into_iter().flatten() {
            let (status, spec) = (&plan["status"], &plan["spec"]);
            let hint = spec["selectionHint"].as_str().map(|hint| format!("  {}", plain(hint)));
            let (at, executions) = (text(status, "createdAt"), &status["executions"]);
            let steps = spec["steps"].as_array().map_or(0, Vec::len);
            let hint = hint.unwrap_or_default();
            writeln!(out, "{}  {at}  {steps} steps, {executions} executions{hint}", text(plan, "id"))?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let plan = get(client, &self.id)?;
        print_pretty(self.json, &plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_suggested_command_names_what_the_plan_leaves_open() {
        let params = json!([
            { "name": "who", "required": true },
            { "name": "times", "required": true, "default": 2 },
            { "name": "note" },
        ]);
        let open = json!({ "id": "pl_1", "spec": { "params": params } });
        assert_eq!(
            run_command(&open),
            "windlass plans run pl_1 --param who=VALUE --cluster NAME --runner GROUP"
        );
        let bound =
            json!({ "id": "pl_2", "spec": { "cluster": { "pattern": "eu-*" }, "runner": "default" } });
        assert_eq!(run_command(&bound), "windlass plans run pl_2");
    }
}
