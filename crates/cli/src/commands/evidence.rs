//! `windlass evidence`

use crate::api::{ApiTarget, Need, get_evidence};
use crate::commands::report::print_json;
use crate::data::Data;
use crate::exit::{self, Usage};
use crate::format::{counted, plain};
use crate::ids;
use crate::progress::say;
use anyhow::Context;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_engine::Folder;
use windlass_server::anchor::Anchor;
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::vault::LocalVault;
use windlass_views::check_entry;

/// How much of a hash is shown to people; --json has all of it.
const HASH_SHOWN: usize = 12;

/// Show how every attempt, step and the whole execution came out, and what people did to it
///
/// Each entry holds the hash of the one before it: who keeps the last hash elsewhere can see later that nothing before it
/// was changed. `windlass evidence verify FILE` checks what was exported.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Evidence {
    #[command(subcommand)]
    verify: Option<Command>,
    /// The execution's id, or a part of it
    #[arg(value_name = "ID", required = true)]
    id: Option<String>,
    /// Print each entry as one JSON object on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check exported evidence: the chain of hashes, and its anchor if there is one
    ///
    /// The file is what `windlass evidence ID --json` printed, or an answer of `GET …/evidence`. An anchor is checked with
    /// the key of the data folder. The exit code is 1 if an entry is not as it was written; the first one is named.
    Verify {
        /// The file, or - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

impl Evidence {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(Command::Verify { file }) = &self.verify {
            return verify(file, self.target.data()?);
        }
        self.target.check_exists()?;
        let entries = self.target.with(("windlass evidence", Need::Read), |client| {
            Ok(get_evidence(client, ids::find(client, self.id.as_deref().unwrap_or_default())?)?)
        })?;
        for entry in entries {
            if self.json {
                print_json(&entry)?;
            } else {
                writeln!(std::io::stdout(), "{}", line(&entry))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn line(entry: &Value) -> String {
    let text = |value: &Value| plain(value.as_str().unwrap_or_default());
    let hash: String = text(&entry["hashSha256"]).chars().take(HASH_SHOWN).collect();
    let by = entry["actor"]["userId"].as_str().map(|by| format!(", by {}", plain(by))).unwrap_or_default();
    let notes = entry["notes"].as_str().map(|notes| format!(": {}", plain(notes))).unwrap_or_default();
    format!("{}  {hash}  {}{by}{notes}", text(&entry["endedAtIso"]), text(&entry["summary"]))
}

fn verify(file: &Path, data: &Data) -> anyhow::Result<ExitCode> {
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let (entries, anchor) = read(&text)?;
    let mut last: Option<String> = None;
    for (number, entry) in (1..).zip(&entries) {
        match check_entry(entry, last.as_deref()) {
            Ok(hash) => last = Some(hash),
            Err(why) => {
                let id = entry["evidenceId"].as_str().map_or_else(|| format!("entry {number}"), plain);
                writeln!(std::io::stdout(), "{id} {why}")?;
                return Ok(ExitCode::from(exit::FAILED));
            }
        }
    }
    if let Some(why) = anchor.and_then(|anchor| anchored(&anchor, &entries, data).transpose()).transpose()? {
        writeln!(std::io::stdout(), "the anchor {why}")?;
        return Ok(ExitCode::from(exit::FAILED));
    }
    say(&format!("{}: none was changed", counted(entries.len(), "entry")));
    Ok(ExitCode::SUCCESS)
}

/// Entries one to a line, or an answer of the API.
fn read(text: &str) -> anyhow::Result<(Vec<Value>, Option<Anchor>)> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        values.push(value.context("the file is not JSON")?);
    }
    match values.as_mut_slice() {
        [Value::Object(whole)] if whole.contains_key("evidence") => {
            let anchor = whole.remove("anchor").map(serde_json::from_value).transpose();
            let entries = whole.remove("evidence").and_then(|entries| entries.as_array().cloned());
            let entries = entries.ok_or_else(|| Usage::new("`evidence` in the file is no list"))?;
            Ok((entries, anchor.context("the anchor cannot be read")?))
        }
        _ => Ok((values, None)),
    }
}

/// What is wrong with an anchor; None where it fits, or there is no key to check it with.
fn anchored(anchor: &Anchor, entries: &[Value], data: &Data) -> anyhow::Result<Option<String>> {
    let last = entries.last().map(|entry| (entry["evidenceId"].as_str(), entry["hashSha256"].as_str()));
    if last != Some((Some(&anchor.evidence_id), Some(&anchor.hash_sha256))) {
        return Ok(Some("is of another entry than the last: entries are missing or were added".to_owned()));
    }
    if !Folder::store(data.folder()).exists() {
        say("the anchor is not checked: its key is in the data folder that made it (--data DIR)");
        return Ok(None);
    }
    let seal = LocalVault::of(data.folder(), EngineSecrets::from_environment())?.audit_seal()?;
    Ok(match seal {
        Some(seal) if seal.id() != anchor.key_id => {
            Some(format!("was made with the key {}, and the folder has {}", anchor.key_id, seal.id()))
        }
        Some(seal) if anchor.is_by(&seal) => None,
        Some(_) => Some("was not made by the key that it names".to_owned()),
        None => Some("cannot be checked: the folder has no key".to_owned()),
    })
}
