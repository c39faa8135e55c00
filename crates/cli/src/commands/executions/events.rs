//! `windlass executions events`

use crate::api::{ApiEvents, Client};
use crate::commands::report::{print_json, text};
use crate::ids;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_views::label;

/// Show the events of an execution, by their public names
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
        let mut events = ApiEvents::new(client.clone(), id, self.follow);
        let mut idle_reported = false;
        while let Some(page) = events.next_page()? {
            for event in &page {
                self.print(event)?;
            }
            if events.waits() && !std::mem::replace(&mut idle_reported, true) {
                client.report_idle(id);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, event: &Value) -> anyhow::Result<()> {
        if self.json {
            return print_json(event);
        }
        let path = event["path"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let path: Vec<u32> = path.filter_map(|index| index.try_into().ok()).collect();
        let about = event["step"].as_str().map(|step| label(step, &path)).unwrap_or_default();
        let (at, name) = (text(event, "timestamp"), text(event, "event"));
        let line = format!("{at}  {:>5}  {name:22}  {about}", event["sequence"].to_string());
        Ok(writeln!(std::io::stdout(), "{}", line.trim_end())?)
    }
}
