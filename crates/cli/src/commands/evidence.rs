//! `windlass evidence`

mod verify;

use crate::api::{ApiTarget, Client, EvidencePage, Need, get_evidence};
use crate::format::plain;
use crate::ids;
use serde_json::Value;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_kernel::ExecutionId;

/// Length of a hash in output for people; --json has the whole hash.
const HASH_SHOWN: usize = 12;

/// Show the result of every attempt, step and the whole execution, and the actions of people
///
/// Each record has the hash of the one before it, so that an auditor who keeps the last hash elsewhere can verify later
/// that no earlier record was changed. `windlass evidence verify FILE` checks exported evidence.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Evidence {
    #[command(subcommand)]
    verify: Option<Command>,
    /// The execution's id, or a part of it
    #[arg(value_name = "ID", required = true)]
    id: Option<String>,
    /// Print each record as one JSON object on a line
    #[arg(long)]
    json: bool,
    /// Like --json, with the signed end of the chain in the last record: the file that `verify` reads
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check exported evidence: every record, their order, and the signed end if there is one
    ///
    /// The file is the output of `windlass evidence ID --jsonl`, or an answer of `GET …/evidence`. An anchor is checked
    /// with the key of the data folder; with --data DIR, a file without an anchor of that folder is refused. The exit
    /// code is 1 if a record was changed, removed, repeated or moved, or if the end is missing; the first such record
    /// is named.
    Verify {
        /// The file, or - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Export,
}

impl Evidence {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(Command::Verify { file }) = &self.verify {
            let folder = self.target.folder();
            return verify::run(file, folder, !folder.flag().is_empty());
        }
        let form = match (self.json, self.jsonl) {
            (_, true) => Form::Export,
            (true, false) => Form::Json,
            (false, false) => Form::Text,
        };
        self.target.check_exists()?;
        self.target.with(("windlass evidence", Need::Read), |client| {
            print(client, ids::find(client, self.id.as_deref().unwrap_or_default())?, form)
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints one page after another, so that the memory does not grow with the length of the chain.
fn print(client: &Client, id: ExecutionId, form: Form) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut cursor = None;
    loop {
        let EvidencePage { mut records, anchor, cursor: next } = get_evidence(client, id, cursor.as_deref())?;
        if let (Form::Export, Some(last), Some(anchor)) = (form, records.last_mut(), anchor) {
            last["anchor"] = anchor;
        }
        for record in &records {
            match form {
                Form::Text => writeln!(out, "{}", line(record))?,
                Form::Json | Form::Export => writeln!(out, "{record}")?,
            }
        }
        cursor = next;
        if cursor.is_none() {
            return Ok(out.flush()?);
        }
    }
}

fn line(record: &Value) -> String {
    let text = |value: &Value| plain(value.as_str().unwrap_or_default());
    let hash: String = text(&record["hashSha256"]).chars().take(HASH_SHOWN).collect();
    let by = record["actor"]["userId"].as_str().map(|by| format!(", by {}", plain(by))).unwrap_or_default();
    let notes = record["notes"].as_str().map(|notes| format!(": {}", plain(notes))).unwrap_or_default();
    format!("{}  {hash}  {}{by}{notes}", text(&record["endedAtIso"]), text(&record["summary"]))
}
