//! `windlass graph`: draws a definition.

use super::definition_set::DefinitionSet;
use super::source::Source;
use crate::api::{ApiTarget, Need, get_picture};
use crate::exit;
use crate::ids;
use crate::progress::say;
use anyhow::Context;
use clap::ValueEnum;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass_dialects::graph::{Format, draw};
use windlass_dialects::{Outside, compile_for};

/// Draw a definition or an execution: steps, arcs with their guards, gates, loops
///
/// An execution is drawn with the state of each step, as by `windlass executions get ID --graph`.
#[derive(Debug, clap::Args)]
pub struct Graph {
    /// The definition, YAML or JSON, where `-` reads standard input; or the id of an execution
    #[arg(value_name = "FILE|ID")]
    file: PathBuf,
    #[arg(long, value_enum, default_value_t = Drawn::Mermaid)]
    format: Drawn,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Drawn {
    /// Text for pages that render Mermaid
    Mermaid,
    /// Text for Graphviz
    Dot,
    /// An image for browsers
    Svg,
}

impl Drawn {
    pub fn name(self) -> &'static str {
        match self {
            Drawn::Mermaid => "mermaid",
            Drawn::Dot => "dot",
            Drawn::Svg => "svg",
        }
    }
}

impl From<Drawn> for Format {
    fn from(drawn: Drawn) -> Format {
        match drawn {
            Drawn::Mermaid => Format::Mermaid,
            Drawn::Dot => Format::Dot,
            Drawn::Svg => Format::Svg,
        }
    }
}

impl Graph {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(id) = self.execution() {
            return self.draw_execution(id);
        }
        let source = Source::read(&self.file)?;
        let compiled = compile_for(&source.text, Outside::Unknown);
        let Some(net) = &compiled.net else {
            for diagnostic in &compiled.diagnostics {
                say(&diagnostic.render(&compiled.shown, &source.shown));
            }
            say(&format!(
                "{}: {}; nothing was drawn",
                source.shown,
                DefinitionSet::default().problems(&compiled)
            ));
            return Ok(ExitCode::from(exit::USAGE));
        };
        put(&draw(net, None, self.format.into())?, self.output.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the argument if it is the id of an execution. A file of that name comes first.
    fn execution(&self) -> Option<&str> {
        let text = self.file.to_str().filter(|text| ids::is_id(text))?;
        (!self.file.exists()).then_some(text)
    }

    fn draw_execution(&self, id: &str) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let picture = self.target.with(("windlass graph", Need::Read), |client| {
            Ok(get_picture(client, ids::find(client, id)?, self.format)?)
        })?;
        put(&picture, self.output.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes to the file, or to standard output.
pub fn put(picture: &str, file: Option<&Path>) -> anyhow::Result<()> {
    match file {
        Some(file) => {
            std::fs::write(file, picture).with_context(|| format!("cannot write {}", file.display()))
        }
        None => Ok(std::io::stdout().write_all(picture.as_bytes())?),
    }
}
