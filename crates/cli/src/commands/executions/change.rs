//! Commands that change an execution.

use crate::api::Client;
use crate::commands::report::{next_commands, print_json};
use crate::commands::run::inputs::pair;
use crate::exit::Usage;
use crate::ids;
use crate::progress::say;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

/// Cancel an execution
#[derive(Debug, clap::Args)]
pub struct Cancel {
    #[command(flatten)]
    change: Change,
    /// Reason, for the journal
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Skip compensation, too
    #[arg(long)]
    force: bool,
    /// Run the compensations that the definition declares
    #[arg(long, conflicts_with = "force")]
    compensate: bool,
}

/// Hold an execution: running work ends, no new work begins
#[derive(Debug, clap::Args)]
pub struct Pause {
    #[command(flatten)]
    change: Change,
    /// Reason, for the journal
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

/// Release a held execution
#[derive(Debug, clap::Args)]
pub struct Resume {
    #[command(flatten)]
    change: Change,
}

/// Set keys of an execution's context; gates that read them are evaluated again
#[derive(Debug, clap::Args)]
pub struct Patch {
    #[command(flatten)]
    change: Change,
    /// VALUE is JSON, or else a string
    #[arg(value_name = "KEY=VALUE", required = true)]
    keys: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct Change {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Cancel {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let Cancel { reason, force, compensate, .. } = self;
        let body = json!({ "reason": reason, "force": force, "compensate": compensate });
        self.change.send(client, (Method::POST, &["cancel"]), &body)
    }
}

impl Pause {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.change.send(client, (Method::POST, &["pause"]), &json!({ "reason": self.reason }))
    }
}

impl Resume {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.change.send(client, (Method::POST, &["resume"]), &json!({}))
    }
}

impl Patch {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let pairs: Result<_, Usage> = self.keys.iter().map(|text| pair("patch", text)).collect();
        self.change.send(client, (Method::PATCH, &["context"]), &Value::Object(pairs?))
    }
}

impl Change {
    /// Sends the change to a route below the execution, and prints the status that follows from it.
    pub(super) fn send(
        &self,
        client: &Rc<Client>,
        (method, route): (Method, &[&str]),
        body: &Value,
    ) -> anyhow::Result<ExitCode> {
        let id = ids::find(client, &self.id)?;
        let name = execution_id(id);
        let answer = client.send(method, &[&["executions", name.as_str()], route].concat(), body)?;
        let status = answer["status"].as_str().unwrap_or_default();
        let approvals = &answer["approvals"];
        if self.json {
            let mut printed = json!({ "executionId": name, "status": status });
            if approvals.is_object() {
                printed["approvals"] = approvals.clone();
            }
            print_json(&printed)?;
        } else {
            writeln!(std::io::stdout(), "{name} {status}")?;
        }
        if approvals.is_object() {
            say(&format!("{} of {} approvals; others must follow", approvals["given"], approvals["needed"]));
        }
        report_next_step(client, id, status)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reports the command that continues the execution after a change by this process, which has no workers.
fn report_next_step(client: &Rc<Client>, id: ExecutionId, status: &str) -> anyhow::Result<()> {
    match status {
        _ if !client.is_in_process() => {}
        "completed" | "failed" | "partial_success" | "cancelled" => {}
        "paused" => say(&next_commands(client, id)?),
        _ => {
            let command = client.resume_command(id);
            say(&format!("no process runs it at the moment; continue it with:\n  {command}"));
        }
    }
    Ok(())
}
