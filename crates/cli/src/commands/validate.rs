//! `windlass validate`: is this a definition that can run?

use super::counted;
use super::source::Source;
use crate::exit;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_dialects::{Compiled, compile};

/// Check a definition without running it
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// The definition, YAML or JSON; `-` reads standard input
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Validate {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let source = Source::read(&self.file)?;
        let compiled = compile(&source.text);
        if self.json {
            print_json(&compiled)?;
        } else {
            print(&compiled, &source)?;
        }
        Ok(if compiled.is_valid() { ExitCode::SUCCESS } else { ExitCode::from(exit::USAGE) })
    }
}

fn print_json(compiled: &Compiled) -> anyhow::Result<()> {
    let told = json!({
        "valid": compiled.is_valid(),
        "dialect": compiled.dialect,
        "name": compiled.name,
        "errors": compiled.errors().collect::<Vec<_>>(),
        "warnings": compiled.warnings().collect::<Vec<_>>(),
    });
    Ok(writeln!(std::io::stdout(), "{told}")?)
}

fn print(compiled: &Compiled, source: &Source) -> anyhow::Result<()> {
    let file = &source.shown;
    for diagnostic in &compiled.diagnostics {
        eprintln!("{}", diagnostic.render(&compiled.shown, file));
    }
    let counts = problems(compiled);
    match (&compiled.net, compiled.dialect) {
        (Some(net), Some(dialect)) => {
            let name = compiled.name.as_deref().unwrap_or("without a name");
            let steps = counted(net.spec().steps.len(), "step");
            writeln!(std::io::stdout(), "{file}: {} {name}, {steps}, {counts}", dialect.name())?;
        }
        _ => eprintln!("{file}: {counts}"),
    }
    Ok(())
}

pub fn problems(compiled: &Compiled) -> String {
    let (errors, warnings) = (compiled.errors().count(), compiled.warnings().count());
    match (errors, warnings) {
        (0, 0) => "no problem".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}
