//! `windlass executions list`

use crate::commands::told::print_json;
use crate::data::Data;
use crate::embedded::now;
use crate::words::{age, plain};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use windlass_dialects::view::{execution_id, status, time, workflow_id};
use windlass_kernel::Phase;
use windlass_store::{Listed, Query, Reader, Status};

/// Executions read at a time.
const PAGE: usize = 1_000;

/// List executions, the newest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those with this status
    #[arg(long, value_enum)]
    status: Option<Wanted>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Wanted {
    Queued,
    Initializing,
    Running,
    Paused,
    Completed,
    Failed,
    PartialSuccess,
    Cancelled,
    /// Not ended
    Open,
}

impl Wanted {
    /// The widest question to the store that finds them all.
    fn asked(self) -> Status {
        use windlass_kernel::Outcome;
        match self {
            Wanted::Completed => Status::Phase(Phase::Ended(Outcome::Completed)),
            Wanted::Failed => Status::Phase(Phase::Ended(Outcome::Failed)),
            Wanted::PartialSuccess => Status::Phase(Phase::Ended(Outcome::Partial)),
            Wanted::Cancelled => Status::Phase(Phase::Ended(Outcome::Cancelled)),
            Wanted::Paused => Status::Phase(Phase::Paused),
            Wanted::Queued | Wanted::Initializing | Wanted::Running | Wanted::Open => Status::Open,
        }
    }

    /// Several phases can have one status.
    fn fits(self, phase: Phase) -> bool {
        match self {
            Wanted::Queued => status(phase) == "queued",
            Wanted::Initializing => status(phase) == "initializing",
            Wanted::Running => status(phase) == "running",
            _ => true,
        }
    }
}

impl List {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let mut found = self.find(&mut data.read()?)?;
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        if self.json {
            let told: Vec<Value> = found.iter().map(as_json).collect();
            print_json(&json!({ "executions": told, "pagination": { "hasMore": more } }))?;
        } else {
            print(&found)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// One more than asked for, if there is one.
    fn find(&self, reader: &mut impl Reader) -> anyhow::Result<Vec<Listed>> {
        let wanted = self.limit.saturating_add(1);
        let limit = wanted.min(PAGE);
        let mut query = Query { status: self.status.map(Wanted::asked), limit, ..Query::default() };
        let mut found = Vec::new();
        loop {
            let page = reader.list(&query)?;
            let last = page.len() < limit;
            query.before = page.last().map(|listed| listed.execution);
            found.extend(
                page.into_iter().filter(|row| self.status.is_none_or(|status| status.fits(row.phase))),
            );
            if last || found.len() >= wanted {
                return Ok(found);
            }
        }
    }
}

fn as_json(row: &Listed) -> Value {
    let mut told = json!({
        "executionId": execution_id(row.execution),
        "workflowId": row.workflow.map(|workflow| workflow_id(workflow.0)),
        "workflowName": row.name,
        "workflowVersion": row.version,
        "dialect": row.dialect,
        "status": status(row.phase),
        "triggerType": row.trigger,
        "createdAt": time(row.created_at),
        "updatedAt": time(row.at),
    });
    if let Some(parent) = row.parent {
        told["parentExecutionId"] = json!(execution_id(parent));
    }
    if row.phase.is_ended() {
        told["completedAt"] = json!(time(row.at));
    }
    told
}

/// Fits 80 columns; exact times are in --json.
fn print(rows: &[Listed]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let now = now();
    let shown = |row: &Listed| format!("{}{}", status(row.phase), if row.held { " (held)" } else { "" });
    let width = rows.iter().map(|row| shown(row).len()).max().unwrap_or(0);
    for row in rows {
        let (id, age) = (execution_id(row.execution), age(now.since(row.created_at)));
        let name = plain(row.name.as_deref().unwrap_or("-"));
        writeln!(out, "{id}  {:width$}  {age:>6} ago  {name}", shown(row))?;
    }
    Ok(())
}
