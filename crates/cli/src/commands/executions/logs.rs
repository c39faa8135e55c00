//! `windlass executions logs`

use super::watch::Watching;
use crate::api::{Client, follow};
use crate::commands::report::{known_step, print_json};
use crate::format::log_line;
use crate::ids;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_protocol::Stream;
use windlass_server::follow::{LogLine, Seen};
use windlass_views::{execution_id, time};

/// Show what the steps printed
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Only lines of this step
    #[arg(long)]
    step: Option<String>,
    /// Wait for more until the execution has ended
    #[arg(long)]
    follow: bool,
    /// Print each line as one JSON object
    #[arg(long)]
    json: bool,
}

impl Logs {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let id = ids::find(client, &self.id)?;
        let mut follower = follow(client, id)?;
        if let Some(step) = &self.step {
            known_step(follower.net(), step)?;
        }
        let mut watching = Watching::new(self.follow);
        loop {
            for seen in follower.poll()? {
                match seen {
                    Seen::Line(line) if self.wants(&line) => self.print(id, &line)?,
                    Seen::Line(_) | Seen::Record(_) => {}
                }
            }
            if watching.is_over(follower.state()) {
                return Ok(ExitCode::SUCCESS);
            }
            watching.once(|| client.report_idle(id));
            watching.rest();
        }
    }

    fn wants(&self, line: &LogLine) -> bool {
        self.step.as_ref().is_none_or(|step| *step == line.step)
    }

    fn print(&self, id: ExecutionId, line: &LogLine) -> anyhow::Result<()> {
        if self.json {
            return print_json(&as_json(id, line));
        }
        Ok(writeln!(std::io::stdout(), "{}", log_line(line))?)
    }
}

fn as_json(id: ExecutionId, line: &LogLine) -> Value {
    let stream = match line.stream {
        Stream::Out => "stdout",
        Stream::Err => "stderr",
        Stream::Worker => "worker",
    };
    let mut entry = json!({
        "executionId": execution_id(id),
        "timestamp": time(line.at),
        "level": line.level.name(),
        "nodeId": line.step,
        "nodeName": line.step,
        "message": line.text,
        "data": { "stream": stream, "attempt": line.attempt },
    });
    if let Some(data) = line.data.as_deref() {
        entry["data"]["given"] = data.clone();
    }
    if !line.path.is_empty() {
        entry["data"]["path"] = json!(line.path);
    }
    entry
}
