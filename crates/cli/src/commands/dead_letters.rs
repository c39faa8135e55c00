//! `windlass dead-letters`: occurrences of schedules whose last attempt failed.

use super::report::{print_json, print_pretty, text};
use super::schedules::{SNAKE_CASE, read_pages};
use crate::api::{ApiTarget, Client, Need};
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass dead-letters";

/// Show and resolve occurrences whose last attempt failed
#[derive(Debug, clap::Args)]
pub struct DeadLetters {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Get(Get),
    Redrive(Redrive),
    Discard(Discard),
}

/// List dead letters, the newest first
#[derive(Debug, clap::Args)]
struct List {
    /// Only dead letters of the schedule with this id
    #[arg(long, value_name = "ID")]
    schedule_id: Option<String>,
    /// Maximum number of dead letters
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show a dead letter
#[derive(Debug, clap::Args)]
struct Get {
    /// Id of the dead letter
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Run the occurrence again, beginning with its first attempt
#[derive(Debug, clap::Args)]
struct Redrive {
    /// Id of the dead letter
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Mark a dead letter as resolved without another run
#[derive(Debug, clap::Args)]
struct Discard {
    /// Id of the dead letter
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl DeadLetters {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let reads = matches!(self.command, Command::List(_) | Command::Get(_));
        let need = if reads { Need::Read } else { Need::Change };
        self.target.with((COMMAND, need), |client| match &self.command {
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Redrive(redrive) => redrive.run(client),
            Command::Discard(discard) => discard.run(client),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let filter: Vec<(&str, &str)> =
            self.schedule_id.as_deref().map(|id| ("schedule_id", id)).into_iter().collect();
        let found = read_pages(client, &["dead-letters"], &filter, (SNAKE_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let mut out = stdout().lock();
        for letter in found["items"].as_array().into_iter().flatten() {
            let state = letter["resolution"].as_str().unwrap_or("open");
            let (id, reason) = (text(letter, "id"), plain(text(letter, "reason")));
            writeln!(out, "{id}  {state:9}  {}  {reason}", text(letter, "occurrence_key"))?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let letter = client.get(&["dead-letters", &self.id], &[])?;
        print_pretty(self.json, &letter)
    }
}

impl Redrive {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let redriven = client.send(Method::POST, &["dead-letters", &self.id, "redrive"], &json!({}))?;
        match self.json {
            true => print_json(&redriven),
            false => Ok(writeln!(stdout(), "{}", text(&redriven, "run_id"))?),
        }
    }
}

impl Discard {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let discarded = client.send(Method::POST, &["dead-letters", &self.id, "discard"], &json!({}))?;
        if self.json {
            return print_json(&discarded);
        }
        say(&format!("dead letter {} is discarded", plain(&self.id)));
        Ok(())
    }
}
