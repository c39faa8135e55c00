//! `windlass validate`: checks whether a definition can run.

use super::counted;
use super::definition_set::DefinitionSet;
use super::source::Source;
use crate::adapters::AdaptersFlag;
use crate::api::ApiTarget;
use crate::exit;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_dialects::{Compiled, Severity, compile_for};

/// Check a definition without running it
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// The definition, YAML or JSON; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    target: ApiTarget,
    #[command(flatten)]
    adapters: AdaptersFlag,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Validate {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let source = Source::read(&self.file)?;
        let bindings = self.adapters.load_for_check(&self.target)?;
        let outside = bindings.outside_of_check();
        let compiled = compile_for(&source.text, outside);
        let mut definition_set =
            DefinitionSet::of(&compiled, &source, (&self.target, outside), Severity::Warning)?;
        definition_set.find_missing_secrets(&compiled, &self.target)?;
        if self.json {
            print_json(&compiled, &definition_set)?;
        } else {
            print(&compiled, &definition_set, &source)?;
        }
        Ok(if compiled.is_valid() && definition_set.is_whole() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(exit::USAGE)
        })
    }
}

fn print_json(compiled: &Compiled, definition_set: &DefinitionSet) -> anyhow::Result<()> {
    let missing = definition_set.missing_of_root(Severity::Warning);
    let warnings = compiled.warnings_and_advice().chain(missing).map(|one| json!(one));
    let warnings: Vec<Value> = warnings.chain(definition_set.missing_secrets()).collect();
    let mut report = json!({
        "valid": compiled.is_valid() && definition_set.is_whole(),
        "dialect": compiled.dialect,
        "name": compiled.name,
        "errors": compiled.errors().chain(definition_set.missing_of_root(Severity::Error)).collect::<Vec<_>>(),
        "warnings": warnings,
    });
    let children = definition_set.to_json();
    if !children.is_empty() {
        report["children"] = Value::Array(children);
    }
    Ok(writeln!(std::io::stdout(), "{report}")?)
}

fn print(compiled: &Compiled, definition_set: &DefinitionSet, source: &Source) -> anyhow::Result<()> {
    let file = &source.shown;
    for diagnostic in compiled.diagnostics.iter().chain(&compiled.advice) {
        eprintln!("{}", diagnostic.render(&compiled.shown, file));
    }
    definition_set.report();
    let counts = definition_set.problems(compiled);
    match (&compiled.net, compiled.dialect) {
        (Some(net), Some(dialect)) if definition_set.is_whole() => {
            let name = compiled.name.as_deref().unwrap_or("without a name");
            let steps = counted(net.spec().steps.len(), "step");
            writeln!(std::io::stdout(), "{file}: {} {name}, {steps}, {counts}", dialect.name())?;
        }
        _ => eprintln!("{file}: {counts}"),
    }
    Ok(())
}
