//! `windlass executions artifacts`

use crate::api::{Client, get_execution, get_value};
use crate::commands::report::print_json;
use crate::ids;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

/// List the large values of an execution, or download them
#[derive(Debug, clap::Args)]
pub struct Artifacts {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Write each value to a file in this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A reference in the answer about an execution.
struct Artifact {
    /// Path of the artifact: `inputs.rows`, `make`, `make.2`.
    place: String,
    reference: Value,
}

impl Artifacts {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let execution = get_execution(client, ids::find(client, &self.id)?)?;
        let found = artifacts(&execution);
        if let Some(folder) = &self.output {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let mut listed = Vec::new();
        for Artifact { place, reference } in found {
            let mut entry =
                json!({ "place": place, "digest": reference["$artifact"], "bytes": reference["bytes"] });
            if let Some(folder) = &self.output {
                entry["file"] = json!(download(client, folder, &place, &reference)?);
            }
            if !self.json {
                print(&entry)?;
            }
            listed.push(entry);
        }
        if self.json {
            print_json(&json!({ "artifacts": listed }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(entry: &Value) -> anyhow::Result<()> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let shown = if entry["file"].is_null() { text("digest") } else { text("file") };
    Ok(writeln!(std::io::stdout(), "{:>12}  {}  {shown}", entry["bytes"].to_string(), text("place"))?)
}

fn download(client: &Client, folder: &Path, place: &str, reference: &Value) -> anyhow::Result<String> {
    let value = get_value(client, reference)?.context("the value is not stored any more")?;
    let plain = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let name: String = place.chars().map(plain).collect();
    let file = folder.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(&value)?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file.display().to_string())
}

/// Finds the references of an execution: in its inputs and outputs, and in the result of each firing.
fn artifacts(execution: &Value) -> Vec<Artifact> {
    let mut found = Vec::new();
    for part in ["inputs", "outputs"] {
        fields(part, &execution[part], &mut found);
    }
    let mut firings: BTreeMap<&str, u64> = BTreeMap::new();
    for node in execution["nodeExecutions"].as_array().into_iter().flatten() {
        let name = node["nodeId"].as_str().unwrap_or_default();
        let firing = firings.entry(name).or_default();
        *firing += 1;
        let place = if *firing == 1 { name.to_owned() } else { format!("{name}.{firing}") };
        fields(&place, &node["output"], &mut found);
        for (index, iteration) in node["iterations"].as_array().into_iter().flatten().enumerate() {
            fields(&format!("{place}[{index}]"), &iteration["output"], &mut found);
        }
    }
    found
}

/// Adds a value if it is a reference, and the references among its fields.
fn fields(place: &str, value: &Value, found: &mut Vec<Artifact>) {
    let is_reference = |value: &Value| value["$artifact"].is_string() && value["url"].is_string();
    if is_reference(value) {
        found.push(Artifact { place: place.to_owned(), reference: value.clone() });
    }
    for (name, field) in value.as_object().into_iter().flatten().filter(|(_, field)| is_reference(field)) {
        found.push(Artifact { place: format!("{place}.{name}"), reference: field.clone() });
    }
}
