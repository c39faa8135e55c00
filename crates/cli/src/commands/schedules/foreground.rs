//! `windlass schedules run`: the schedules of a folder in the foreground.

use crate::api::{ApiRequest, Client};
use crate::commands::report::print_json;
use crate::exit::Usage;
use crate::format::plain;
use crate::progress::say;
use crate::signals;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::thread;
use tokio::sync::oneshot;

/// Maximum time for which one request waits for a change. An engine that has ended by itself is noticed by the next request.
const WAIT_MS: &str = "5000";
const NOT_WAITING: &str = "0";
/// Number of runs that are read at a time. Changes between two reads are in the list of runs.
const SHOWN_MAX: &str = "100";

/// The newest runs by id, so that those of one moment are printed in their order.
type Runs = BTreeMap<String, Value>;

/// Start the work of this folder's schedules until Ctrl-C
///
/// Every change of a run is printed. A server starts schedules by itself; in a folder that a server holds, use
/// `windlass runs list`.
#[derive(Debug, clap::Args)]
pub struct Foreground {
    /// Maximum number of steps that run at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// Print one JSON object per change
    #[arg(long)]
    json: bool,
}

impl Foreground {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let signals = signals::listen()?;
        let (interrupt, mut interrupted) = oneshot::channel();
        thread::spawn(move || signals.recv().map(|_| interrupt.send(())));
        let (mut seen, mut tag) = read_page(client.json(request(client, "", NOT_WAITING))?);
        if !client.start_schedules() {
            return Err(Usage::new(format!("another process {} starts the schedules", client.place()))
                .hint("`windlass runs list` shows their runs")
                .into());
        }
        say("starting schedules; Ctrl-C stops");
        loop {
            let changed = client.json_unless(request(client, &tag, WAIT_MS), &mut interrupted)?;
            let is_interrupted = changed.is_none();
            let page = changed.map_or_else(|| client.json(request(client, &tag, NOT_WAITING)), Ok)?;
            let (runs, new_tag) = read_page(page);
            for (id, run) in &runs {
                if seen.get(id).is_none_or(|before| before["status"] != run["status"]) {
                    self.print(run)?;
                }
            }
            if is_interrupted {
                return Ok(());
            }
            (seen, tag) = (runs, new_tag);
        }
    }

    fn print(&self, run: &Value) -> anyhow::Result<()> {
        if self.json {
            return print_json(&json!(run));
        }
        let text = |key: &str| run[key].as_str().unwrap_or("-");
        let (at, id, status, key) = (text("updated_at"), text("id"), text("status"), text("occurrence_key"));
        Ok(writeln!(stdout(), "{at}  {id}  {status:15}  attempt {}  {}", run["attempt"], plain(key))?)
    }
}

fn request(client: &Client, seen: &str, wait_ms: &str) -> ApiRequest {
    let query = [("limit", SHOWN_MAX), ("seen", seen), ("wait_ms", wait_ms)];
    client.request(Method::GET, &["runs"]).query(&query)
}

/// Returns the runs of a page, and its tag.
fn read_page(mut page: Value) -> (Runs, String) {
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let id = |run: &Value| run["id"].as_str().unwrap_or_default().to_owned();
    let tag = page["tag"].as_str().unwrap_or_default().to_owned();
    (items.into_iter().map(|run| (id(&run), run)).collect(), tag)
}
