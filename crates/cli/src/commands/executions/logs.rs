//! `windlass executions logs`

use super::watch::Watching;
use crate::api::{Client, follow};
use crate::commands::report::{known_step, print_json};
use crate::follow::{FollowedItem, LogLine};
use crate::format::log_line;
use crate::ids;
use crate::text::Colours;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::{execution_id, time};

/// Show the output of the steps
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Only lines of these steps; STEP[3] is one iteration
    #[arg(value_name = "STEP")]
    steps: Vec<String>,
    /// Only lines of this step
    #[arg(long = "step", value_name = "STEP", hide = true)]
    step: Vec<String>,
    /// Only the last lines, and those that follow
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print the time of each line
    #[arg(long)]
    timestamps: bool,
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
        let wanted: Vec<LogStep> =
            self.steps.iter().chain(&self.step).map(|text| LogStep::of(text)).collect();
        for wanted in &wanted {
            known_step(follower.steps(), &wanted.step)?;
        }
        let mut watching = Watching::new(self.follow);
        let mut tail = self.tail;
        loop {
            let mut lines: VecDeque<LogLine> = VecDeque::new();
            for seen in follower.poll()? {
                match seen {
                    FollowedItem::Line(line)
                        if wanted.is_empty() || wanted.iter().any(|one| one.fits(&line)) =>
                    {
                        lines.push_back(line);
                    }
                    FollowedItem::Line(_) | FollowedItem::Entry(_) => {}
                }
                if tail.is_some_and(|tail| lines.len() > tail) {
                    lines.pop_front();
                }
            }
            // Later lines all follow.
            tail = None;
            for line in &lines {
                self.print(id, line)?;
            }
            if watching.is_over(follower.state()) {
                return Ok(ExitCode::SUCCESS);
            }
            watching.once(|| client.report_idle(id));
            watching.rest();
        }
    }

    fn print(&self, id: ExecutionId, line: &LogLine) -> anyhow::Result<()> {
        if self.json {
            return print_json(&as_json(id, line));
        }
        let at = if self.timestamps { format!("{}  ", time(line.at)) } else { String::new() };
        Ok(writeln!(stdout(), "{at}{}", log_line(line, Colours::for_stdout()))?)
    }
}

/// A step, or one of its iterations.
#[derive(Debug)]
struct LogStep {
    step: String,
    path: Vec<u32>,
}

impl LogStep {
    /// Parses `step`, `step[3]` or `step[0][3]`.
    fn of(text: &str) -> LogStep {
        let parsed = text.strip_suffix(']').and_then(|open| {
            let (step, indexes) = open.split_once('[')?;
            let path: Result<Vec<u32>, _> = indexes.split("][").map(str::parse).collect();
            Some(LogStep { step: step.to_owned(), path: path.ok()? })
        });
        parsed.unwrap_or_else(|| LogStep { step: text.to_owned(), path: Vec::new() })
    }

    fn fits(&self, line: &LogLine) -> bool {
        self.step == line.step && line.path.starts_with(&self.path)
    }
}

fn as_json(id: ExecutionId, line: &LogLine) -> Value {
    let mut entry = json!({
        "executionId": execution_id(id),
        "timestamp": time(line.at),
        "level": line.level.name(),
        "nodeId": line.step,
        "nodeName": line.step,
        "message": line.text,
        "data": { "stream": line.stream.name(), "attempt": line.attempt },
    });
    if let Some(data) = line.data.as_deref() {
        entry["data"]["given"] = data.clone();
    }
    if !line.path.is_empty() {
        entry["data"]["path"] = json!(line.path);
    }
    entry
}
