//! `windlass schedules apply`: schedules as they are in files.

use super::find_named;
use crate::api::Client;
use crate::commands::report::print_json;
use crate::commands::source::Source;
use crate::exit::Usage;
use crate::format::plain;
use anyhow::Context;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use windlass_dialects::as_json;

/// Create and change schedules as files describe them
///
/// Each file has one schedule. One with the same name is changed, others are created; none is deleted. Every change is
/// printed.
#[derive(Debug, clap::Args)]
pub struct Apply {
    /// A file, or a folder of .yaml, .yml and .json files
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    path: PathBuf,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Apply {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let mut applied = Vec::new();
        for file in files(&self.path)? {
            let source = Source::read(&file)?;
            let wrong = || Usage::new(format!("{} is neither YAML nor JSON", source.shown));
            let document = as_json(&source.text).ok_or_else(wrong)?;
            applied.push(self.apply(client, &document, &source).with_context(|| source.shown.clone())?);
        }
        if self.json {
            return print_json(&json!({ "applied": applied }));
        }
        let mut out = stdout().lock();
        for change in &applied {
            let (action, name) = (&change["action"], change["name"].as_str().unwrap_or("-"));
            writeln!(out, "{:9}  {}", action.as_str().unwrap_or_default(), plain(name))?;
            for field in change["fields"].as_array().into_iter().flatten() {
                let path = field["path"].as_str().unwrap_or_default();
                writeln!(out, "  {path}: {} -> {}", field["before"], field["after"])?;
            }
        }
        Ok(())
    }

    fn apply(&self, client: &Client, document: &Value, source: &Source) -> anyhow::Result<Value> {
        let name = document["name"].as_str().unwrap_or_default().trim().to_owned();
        let Some(listed) = find_named(client, &name)?.filter(|_| !name.is_empty()) else {
            if !self.dry_run {
                client.json(client.request(Method::POST, &["schedules"]).definition(&source.text))?;
            }
            return Ok(json!({ "action": "created", "name": name, "fields": [] }));
        };
        let id = listed["id"].as_str().unwrap_or_default();
        let before = client.get(&["schedules", id], &[])?;
        let fields = differences("", &before, document);
        let action = if fields.is_empty() { "unchanged" } else { "changed" };
        if !fields.is_empty() && !self.dry_run {
            client.json(client.request(Method::PUT, &["schedules", id]).definition(&source.text))?;
        }
        Ok(json!({ "action": action, "name": name, "fields": fields }))
    }
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

/// Returns the fields of a file that are not those of the stored schedule.
fn differences(path: &str, before: &Value, after: &Value) -> Vec<Value> {
    match (before, after) {
        (Value::Object(known), Value::Object(wanted)) => {
            let inner = |(name, value): (&String, &Value)| {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                differences(&place, known.get(name).unwrap_or(&Value::Null), value)
            };
            Map::iter(wanted).flat_map(inner).collect()
        }
        _ if before == after => Vec::new(),
        _ => vec![json!({ "path": path, "before": before, "after": after })],
    }
}
