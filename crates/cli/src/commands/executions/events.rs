//! `windlass executions events`

use super::watch::Watching;
use crate::api::{Client, follow};
use crate::commands::told::print_json;
use crate::ids;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_server::follow::{Happened, Seen, Subject};
use windlass_views::{execution_id, time};

/// Show what happened, in public event names
#[derive(Debug, clap::Args)]
pub struct Events {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Wait for more until the execution has ended
    #[arg(long)]
    follow: bool,
    /// Print each event as one JSON object on a line
    #[arg(long)]
    json: bool,
}

impl Events {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let id = ids::find(client, &self.id)?;
        let mut follower = follow(client, id)?;
        let mut watching = Watching::new(self.follow);
        loop {
            for seen in follower.poll()? {
                if let Seen::Record(happened) = seen {
                    self.print(id, &happened)?;
                }
            }
            if watching.is_over(follower.state()) {
                return Ok(ExitCode::SUCCESS);
            }
            watching.once(|| client.report_idle(id));
            watching.rest();
        }
    }

    fn print(&self, id: ExecutionId, happened: &Happened) -> anyhow::Result<()> {
        for (name, subject) in &happened.names {
            if self.json {
                print_json(&as_json(id, happened, name, subject.as_ref()))?;
            } else {
                let at = time(happened.record.at);
                let about = subject.as_ref().map(Subject::label).unwrap_or_default();
                let line = format!("{at}  {:>5}  {name:22}  {about}", happened.version);
                writeln!(std::io::stdout(), "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

/// `sequence` is the place of the record in the journal; events of one record share it. `data` is the record.
fn as_json(id: ExecutionId, happened: &Happened, name: &str, subject: Option<&Subject>) -> Value {
    let mut told = json!({
        "executionId": execution_id(id),
        "sequence": happened.version,
        "timestamp": time(happened.record.at),
        "event": name,
    });
    if let Some(subject) = subject {
        told["step"] = json!(subject.name);
        if !subject.path.0.is_empty() {
            told["path"] = json!(subject.path);
        }
    }
    told["data"] = json!(happened.record.event);
    told
}
