//! `windlass executions events`

use super::watch::Watching;
use crate::api::{Client, follow};
use crate::commands::report::print_json;
use crate::follow::{FollowedItem, FollowedRecord};
use crate::ids;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::Net;
use windlass_views::{EventProjection, Projection as _, label};

/// Show the events of an execution, by their public names
#[derive(Debug, clap::Args)]
pub struct Events {
    /// Id of the execution, or a part of it
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
        let (mut watching, mut events) = (Watching::new(self.follow), EventProjection::new(id));
        loop {
            for seen in follower.poll()? {
                if let FollowedItem::Record(followed) = seen {
                    self.print(&mut events, follower.net(), &followed)?;
                }
            }
            if watching.is_over(follower.state()) {
                return Ok(ExitCode::SUCCESS);
            }
            watching.once(|| client.report_idle(id));
            watching.rest();
        }
    }

    fn print(
        &self,
        events: &mut EventProjection,
        net: &Net,
        followed: &FollowedRecord,
    ) -> anyhow::Result<()> {
        for event in events.project(net, &followed.record, &followed.entry) {
            if self.json {
                print_json(&json!(event))?;
            } else {
                let (at, sequence) = (event.timestamp, event.sequence);
                let about = event.step.map(|step| label(&step, &event.path)).unwrap_or_default();
                let line = format!("{at}  {sequence:>5}  {:22}  {about}", event.event);
                writeln!(std::io::stdout(), "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}
