//! The data folder as the command line names it.

use crate::exit::Usage;
use std::path::{Path, PathBuf};
use windlass_engine::Folder;
use windlass_store::Store;
use windlass_store::sqlite::Sqlite;

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

    pub fn check_exists(&self) -> Result<(), Usage> {
        match Folder::store(&self.folder).exists() {
            true => Ok(()),
            false => Err(Usage::new(format!("there is no data in {}", self.folder.display()))
                .hint("`windlass run FILE` creates the folder; --data DIR names another one")),
        }
    }

    /// Opens a reader of the store; another process may be writing it. Nothing is created or changed.
    pub fn read(&self) -> anyhow::Result<Reading> {
        self.check_exists()?;
        Ok(Sqlite::read_only(&Folder::store(&self.folder))?)
    }

    /// Returns the flag that a command needs to work in this folder.
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
