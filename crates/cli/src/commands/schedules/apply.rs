//! `windlass schedules apply`: creates and changes schedules as described in files.

use super::find_named;
use crate::api::Client;
use crate::commands::report::print_json;
use crate::commands::source::Source;
use crate::exit::Usage;
use crate::format::plain;
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use windlass_dialects::as_json;

const DRY_RUN: [(&str, &str); 1] = [("dry_run", "true")];
/// Fields of a schedule that the server manages.
const MANAGED: [&str; 7] =
    ["id", "revision", "paused_at", "next_run_at", "last_run_at", "created_at", "updated_at"];

/// Create and change schedules as described in files
///
/// Each file has one schedule. One with the same name is changed, others are created; none is deleted. All files are checked
/// first, and every change is printed.
#[derive(Debug, clap::Args)]
pub struct Apply {
    /// A file, or a folder of .yaml, .yml and .json files
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    path: PathBuf,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A file, and its changes.
struct Change {
    source: Source,
    name: String,
    /// None: it is created.
    id: Option<String>,
    /// Fields with their values before and after.
    fields: Vec<Value>,
}

impl Change {
    fn action(&self) -> &'static str {
        match (&self.id, self.fields.is_empty()) {
            (None, _) => "created",
            (Some(_), true) => "unchanged",
            (Some(_), false) => "changed",
        }
    }
}

impl Apply {
    /// Applies the files. All files are checked before the first one is applied.
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let changes = files(&self.path)?
            .iter()
            .map(|file| {
                let source = Source::read(file)?;
                let shown = source.shown.clone();
                compare(client, source).with_context(|| shown)
            })
            .collect::<anyhow::Result<Vec<Change>>>()?;
        check_names(&changes)?;
        for change in changes.iter().filter(|_| !self.dry_run) {
            apply(client, change).with_context(|| change.source.shown.clone())?;
        }
        if self.json {
            let show = |change: &Change| json!({ "action": change.action(), "name": change.name, "fields": change.fields });
            return print_json(&json!({ "applied": changes.iter().map(show).collect::<Vec<_>>() }));
        }
        let mut out = stdout().lock();
        for change in &changes {
            writeln!(out, "{:9}  {}", change.action(), plain(&change.name))?;
            for field in &change.fields {
                let path = field["path"].as_str().unwrap_or_default();
                writeln!(out, "  {path}: {} -> {}", field["before"], field["after"])?;
            }
        }
        Ok(())
    }
}

/// Requests the changes that a file would make. Fields that the file leaves out have their defaults.
fn compare(client: &Client, source: Source) -> anyhow::Result<Change> {
    let wrong = || Usage::new(format!("{} is neither YAML nor JSON", source.shown));
    let document = as_json(&source.text).ok_or_else(wrong)?;
    let name = document["name"].as_str().unwrap_or_default().trim().to_owned();
    let known = if name.is_empty() { None } else { find_named(client, &name)? };
    let Some(id) = known.and_then(|known| known["id"].as_str().map(str::to_owned)) else {
        let request = client.request(Method::POST, &["schedules"]).query(&DRY_RUN);
        client.json(request.definition(&source.text))?;
        return Ok(Change { source, name, id: None, fields: Vec::new() });
    };
    let before = client.get(&["schedules", &id], &[])?;
    let request = client.request(Method::PUT, &["schedules", &id]).query(&DRY_RUN);
    let mut after = client.json(request.definition(&source.text))?;
    for managed in MANAGED {
        after[managed] = before[managed].clone();
    }
    let fields = differences("", &before, &after);
    Ok(Change { source, name, id: Some(id), fields })
}

fn apply(client: &Client, change: &Change) -> anyhow::Result<()> {
    let request = match &change.id {
        None => client.request(Method::POST, &["schedules"]),
        Some(_) if change.fields.is_empty() => return Ok(()),
        Some(id) => client.request(Method::PUT, &["schedules", id]),
    };
    client.json(request.definition(&change.source.text))?;
    Ok(())
}

/// Refuses two files for one schedule, which would overwrite each other.
fn check_names(changes: &[Change]) -> Result<(), Usage> {
    for (index, change) in changes.iter().enumerate() {
        if let Some(other) = changes[..index].iter().find(|other| other.name == change.name) {
            let (one, two) = (&other.source.shown, &change.source.shown);
            return Err(Usage::new(format!(
                "{one} and {two} describe the same schedule `{}`",
                plain(&change.name)
            )));
        }
    }
    Ok(())
}

fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = || format!("cannot read {}", path.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(unreadable)? {
        let file = entry.with_context(unreadable)?.path();
        let is_schedule = file.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if is_schedule && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(Usage::new(format!("{} has no .yaml, .yml or .json file", path.display())).into()),
        false => Ok(found),
    }
}

/// Returns the fields that differ. A field that only one side has is null on the other.
fn differences(path: &str, before: &Value, after: &Value) -> Vec<Value> {
    match (before, after) {
        (Value::Object(known), Value::Object(wanted)) => {
            let names: BTreeSet<&String> = known.keys().chain(wanted.keys()).collect();
            let inner = |name: &String| {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                differences(&place, &before[name], &after[name])
            };
            names.into_iter().flat_map(inner).collect()
        }
        _ if before == after => Vec::new(),
        _ => vec![json!({ "path": path, "before": before, "after": after })],
    }
}
