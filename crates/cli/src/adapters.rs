//! Bindings of a command: those of a file, or those of the process that does the work.

use crate::api::ApiTarget;
use crate::exit::Usage;
use crate::progress::say;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_dialects::{Adapters, Outside};
use windlass_server::load_adapters;

const VARIABLE: &str = "WINDLASS_ADAPTERS";

#[derive(Debug, clap::Args)]
pub struct AdaptersFlag {
    /// A YAML or JSON file that binds operations and kinds of tools; the variable WINDLASS_ADAPTERS can also name it
    #[arg(long, value_name = "FILE")]
    adapters: Option<PathBuf>,
}

/// Bindings from outside of the definition that a command works with.
#[derive(Debug)]
pub enum Bindings {
    /// Bindings of a file.
    File(Arc<Adapters>),
    /// No file is named.
    None,
    /// Another process does the work, with bindings of its own.
    Elsewhere,
}

impl AdaptersFlag {
    /// Loads the bindings of a command that runs a definition.
    pub fn load(&self, target: &ApiTarget) -> anyhow::Result<Bindings> {
        match (&self.adapters, target.is_elsewhere()) {
            (Some(_), true) => Err(Usage::new(
                "--adapters applies to work in this process, and a server or another process does the work here",
            )
            .hint("pass the file to that process: `windlass serve --adapters FILE`")
            .into()),
            (None, true) => Ok(Bindings::Elsewhere),
            (_, false) => self.load_file(),
        }
    }

    /// Loads the bindings of a command that checks a definition. A named file replaces those of the environment.
    pub fn load_for_check(&self, target: &ApiTarget) -> anyhow::Result<Bindings> {
        if self.adapters.is_none() && target.is_elsewhere() {
            return Ok(Bindings::Elsewhere);
        }
        self.load_file()
    }

    fn load_file(&self) -> anyhow::Result<Bindings> {
        let path = self.adapters.clone().or_else(path_of_environment);
        path.map_or(Ok(Bindings::None), |path| load(&path).map(Bindings::File))
    }
}

impl Bindings {
    /// Returns the bindings for a definition that runs at once: there are no others.
    pub fn outside_of_run(&self) -> Outside<'_> {
        static NONE: Adapters = Adapters::none();
        match self {
            Bindings::File(adapters) => Outside::Final(adapters),
            Bindings::None => Outside::Final(&NONE),
            Bindings::Elsewhere => Outside::Unknown,
        }
    }

    /// Returns the bindings for a definition that is checked. Without a file, it may run where a file exists.
    pub fn outside_of_check(&self) -> Outside<'_> {
        static NONE: Adapters = Adapters::none();
        match self {
            Bindings::File(adapters) => Outside::Final(adapters),
            Bindings::None => Outside::Known(&NONE),
            Bindings::Elsewhere => Outside::Unknown,
        }
    }

    pub fn into_adapters(self) -> Option<Arc<Adapters>> {
        match self {
            Bindings::File(adapters) => Some(adapters),
            Bindings::None | Bindings::Elsewhere => None,
        }
    }
}

/// Returns the bindings of the file that the environment names; none if it names no file.
pub fn adapters_of_environment() -> anyhow::Result<Arc<Adapters>> {
    path_of_environment().map_or(Ok(Arc::default()), |path| load(&path))
}

fn path_of_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn load(path: &Path) -> anyhow::Result<Arc<Adapters>> {
    let loaded = load_adapters(path).map_err(|error| Usage::new(error.to_string()))?;
    loaded.warnings.iter().for_each(|warning| say(warning));
    Ok(loaded.adapters)
}
