//! `windlass schema`: what editors need to complete and check a definition while it is written.

use crate::exit::Usage;
use std::io::Write;
use std::process::ExitCode;
use windlass_dialects::{Dialect, Dialects};

/// Print the JSON Schema of a dialect, for editors
///
/// A file that begins with `# yaml-language-server: $schema=playbook.schema.json` is completed and checked by editors
/// that have the YAML language server.
#[derive(Debug, clap::Args)]
pub struct Schema {
    /// The dialect: playbook, workflow or actions
    dialect: String,
}

impl Schema {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let found = Dialect::of_name(&self.dialect).and_then(Dialect::schema);
        let Some(schema) = found else {
            let message = format!("there is no schema of `{}`", self.dialect);
            let names: Vec<&str> = Dialects::builtin().supported().map(Dialect::name).collect();
            return Err(Usage::new(message).hint(format!("schemas exist for: {}", names.join(", "))).into());
        };
        writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&schema)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
