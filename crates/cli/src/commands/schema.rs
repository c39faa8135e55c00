//! `windlass schema`: JSON Schemas with which editors complete and check a definition.

use crate::exit::Usage;
use std::io::Write;
use std::process::ExitCode;
use windlass_dialects::{Dialect, Dialects};
use windlass_server::openapi;

const API: &str = "api";

/// Print the JSON Schema of a dialect for editors, or the OpenAPI document of the server
///
/// A file that begins with `# yaml-language-server: $schema=playbook.schema.json` is completed and checked by editors
/// that have the YAML language server.
#[derive(Debug, clap::Args)]
pub struct Schema {
    /// The dialect, or `api` for the OpenAPI document of the server
    dialect: String,
}

impl Schema {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let found = match self.dialect.as_str() {
            API => Some(serde_json::to_value(openapi())?),
            name => Dialect::of_name(name).and_then(Dialect::schema),
        };
        let Some(schema) = found else {
            let message = format!("there is no schema of `{}`", self.dialect);
            let names: Vec<&str> = Dialects::builtin().supported().map(Dialect::name).chain([API]).collect();
            return Err(Usage::new(message).hint(format!("schemas exist for: {}", names.join(", "))).into());
        };
        writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&schema)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
