//! The data folder as the command line names it.

use crate::exit::Usage;
use std::path::{Path, PathBuf};
use windlass_engine::Folder;
use windlass_kernel::ExecutionId;
use windlass_store::Store;
use windlass_store::sqlite::Sqlite;
use windlass_views::execution_id;

const DEFAULT: &str = ".windlass";
const VARIABLE: &str = "WINDLASS_DATA";

/// Reads a store that another process may be writing.
pub type Reading = <Sqlite as Store>::Reader;

#[derive(Debug, Clone, clap::Args)]
pub struct Data {
    /// The data folder
    #[arg(long = "data", env = VARIABLE, default_value = DEFAULT, value_name = "DIR", global = true)]
    folder: PathBuf,
}

impl Data {
    pub fn of(folder: PathBuf) -> Data {
        Data { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A reader beside whoever writes; nothing is made or changed.
    pub fn read(&self) -> anyhow::Result<Reading> {
        let store = Folder::store(&self.folder);
        if !store.exists() {
            let what = format!("there is no data in {}", self.folder.display());
            let hint = "`windlass run FILE` makes the folder; another one is named with --data DIR";
            return Err(Usage::new(what).hint(hint).into());
        }
        Ok(Sqlite::read_only(&store)?)
    }

    /// The command that carries an execution on, to be copied.
    pub fn resume(&self, id: ExecutionId) -> String {
        format!("windlass run --resume {}{}", execution_id(id), self.flag())
    }

    /// What a command has to add to mean this folder.
    pub fn flag(&self) -> String {
        let implied = std::env::var_os(VARIABLE).map_or(PathBuf::from(DEFAULT), PathBuf::from);
        let shown = self.folder.display().to_string();
        match shown.contains(char::is_whitespace) {
            _ if implied == self.folder => String::new(),
            true => format!(" --data '{shown}'"),
            false => format!(" --data {shown}"),
        }
    }
}
