//! `windlass validate`: is this a definition that can run?

use super::counted;
use anyhow::Context;
use serde_json::json;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_dialects::{Compiled, compile};

/// Bad definition or usage.
const INVALID: u8 = 2;

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
        let text = match self.text() {
            Ok(text) => text,
            Err(error) => {
                eprintln!("error: {error:#}");
                return Ok(ExitCode::from(INVALID));
            }
        };
        let compiled = compile(&text);
        if self.json {
            self.print_json(&compiled)?;
        } else {
            self.print(&compiled, &text)?;
        }
        Ok(if compiled.is_valid() { ExitCode::SUCCESS } else { ExitCode::from(INVALID) })
    }

    fn text(&self) -> anyhow::Result<String> {
        let bytes = if self.file.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            bytes
        } else {
            std::fs::read(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?
        };
        String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", self.shown()))
    }

    fn shown(&self) -> String {
        if self.file.as_os_str() == "-" { "<stdin>".to_owned() } else { self.file.display().to_string() }
    }

    fn print_json(&self, compiled: &Compiled) -> anyhow::Result<()> {
        let told = json!({
            "valid": compiled.is_valid(),
            "dialect": compiled.dialect,
            "name": compiled.name,
            "errors": compiled.errors().collect::<Vec<_>>(),
            "warnings": compiled.warnings().collect::<Vec<_>>(),
        });
        Ok(writeln!(std::io::stdout(), "{told}")?)
    }

    fn print(&self, compiled: &Compiled, text: &str) -> anyhow::Result<()> {
        let file = self.shown();
        for diagnostic in &compiled.diagnostics {
            eprintln!("{}", diagnostic.render(text, &file));
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
}

fn problems(compiled: &Compiled) -> String {
    let (errors, warnings) = (compiled.errors().count(), compiled.warnings().count());
    match (errors, warnings) {
        (0, 0) => "no problem".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
}
