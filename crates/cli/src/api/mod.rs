//! The API that commands use: that of a server over HTTP, that of the process that holds the data folder through its
//! socket, or one in this process when no other one holds the folder.

mod client;
mod connection;
mod definitions;
mod error;
mod executions;
mod poll;

pub use client::Client;
pub use connection::{ApiRequest, Need};
pub use definitions::{list_workflows, newest_version, workflow_ids};
pub use error::ApiError;
pub use executions::{
    EvidencePage, OPEN, await_rest, follow, get_evidence, get_execution, get_picture, get_status, get_value,
    list_executions, list_executions_of,
};
pub use poll::{ApiEvents, ApiProgress};

use crate::data::Data;
use crate::exit::Usage;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use windlass_engine::Folder;
use windlass_secrets::Zeroizing;
use windlass_server::find_server_url;
use windlass_server::{OWNER_FILE, SocketPath};

pub const URL_VARIABLE: &str = "WINDLASS_URL";
const TOKEN_VARIABLE: &str = "WINDLASS_TOKEN";
/// Largest size of a file with a token.
const TOKEN_MAX: u64 = 16 * 1024;

/// The data folder or the server that a command uses.
#[derive(Debug, clap::Args)]
pub struct ApiTarget {
    #[command(flatten)]
    data: Data,
    /// Work at this server instead of in a data folder
    #[arg(long, env = URL_VARIABLE, value_name = "URL", global = true)]
    url: Option<String>,
    /// A file with the token for the server; the variable WINDLASS_TOKEN holds the token itself
    #[arg(long, env = "WINDLASS_TOKEN_FILE", value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

impl ApiTarget {
    /// Connects to the server, or to the data folder, which is created if it is missing and `need` writes to it. `command` names
    /// this process to others while it holds the folder.
    pub fn connect(&self, command: &str, need: Need) -> anyhow::Result<Client> {
        match self.server_url() {
            Some(url) => {
                let token = self.token(self.is_own_server(url))?;
                Client::connect_server(url, token, url_flag(url))
            }
            None => Client::connect_folder(&self.data, self.token(false)?, command, need),
        }
    }

    /// Fails if the target is a data folder without data.
    pub fn check_exists(&self) -> Result<(), Usage> {
        match self.server_url() {
            Some(_) => Ok(()),
            None => self.data.check_exists(),
        }
    }

    /// Connects, runs `work`, and ends the engine that this process started for it.
    pub fn with<T>(
        &self,
        (command, need): (&str, Need),
        work: impl FnOnce(&Rc<Client>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let client = Rc::new(self.connect(command, need)?);
        let done = work(&client);
        let stopped = stop(client);
        done.and_then(|done| stopped.map(|()| done))
    }

    /// Connects for reading; None if there is nothing to read yet.
    pub fn connect_if_present(&self, command: &str) -> anyhow::Result<Option<Client>> {
        let is_missing = self.server_url().is_none() && !Folder::store(self.data.folder()).exists();
        if is_missing { Ok(None) } else { self.connect(command, Need::Read).map(Some) }
    }

    /// Returns whether another process does the work: a server, or the one that holds the folder.
    pub fn is_elsewhere(&self) -> bool {
        self.server_url().is_some()
            || SocketPath::in_folder(self.data.folder()).is_ok_and(|socket| socket.is_open())
    }

    /// Returns the folder, for work that needs no server.
    pub fn folder(&self) -> &Data {
        &self.data
    }

    /// Returns the folder, for work that only its owner may do.
    pub fn data(&self) -> Result<&Data, Usage> {
        match self.server_url() {
            None => Ok(&self.data),
            Some(url) => Err(Usage::new(format!("this command works in a data folder and not at {url}"))
                .hint("run it on the machine with the server's data folder, without --url and WINDLASS_URL")),
        }
    }

    /// Returns the address of the server for a browser, if there is one.
    pub fn browser_url(&self) -> Option<String> {
        self.server_url().map(str::to_owned).or_else(|| find_server_url(self.data.folder()))
    }

    fn server_url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    fn is_own_server(&self, url: &str) -> bool {
        find_server_url(self.data.folder()).is_some_and(|own| is_same_url(&own, url))
    }

    /// Returns the token. The owner's token is sent only to the server that holds the folder.
    fn token(&self, is_own_server: bool) -> anyhow::Result<Option<Zeroizing<String>>> {
        if let Some(file) = &self.token_file {
            return read_token(file).map(Some);
        }
        if let Some(token) = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) {
            return Ok(Some(Zeroizing::new(token)));
        }
        let owner = self.data.folder().join(OWNER_FILE);
        if is_own_server && owner.exists() { read_token(&owner).map(Some) } else { Ok(None) }
    }
}

/// Ends the engine that this process started, if it did.
pub fn stop(client: Rc<Client>) -> anyhow::Result<()> {
    let client = Rc::into_inner(client).context("the API is still in use")?;
    client.stop()
}

fn read_token(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    use std::io::Read as _;
    let mut text = Zeroizing::new(String::new());
    let opened = std::fs::File::open(file);
    opened
        .and_then(|opened| opened.take(TOKEN_MAX).read_to_string(&mut text))
        .with_context(|| format!("cannot read the token in {}", file.display()))
        .map_err(|error| Usage::new(format!("{error:#}")))?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}

/// Returns the flag that a later command needs to reach the server; the environment may imply it.
fn url_flag(url: &str) -> String {
    let implied = std::env::var(URL_VARIABLE).is_ok_and(|implied| implied == url);
    if implied { String::new() } else { format!(" --url {url}") }
}

fn is_same_url(one: &str, other: &str) -> bool {
    let bare = |url: &str| url.trim_end_matches('/').replace("//localhost", "//127.0.0.1");
    bare(one) == bare(other)
}
