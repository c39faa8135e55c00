//! Where commands work: in a data folder of this machine, or at a server.

mod client;
mod definitions;
mod executions;
mod inbox;
mod refusal;
mod secrets;
mod trail;
mod wish;

pub use client::Client;
pub use definitions::{called, workflows};
pub use inbox::{Taken, WHAT, post, refused};
pub use refusal::ServerError;
pub use secrets::vault;
pub use wish::Wish;

use crate::data::Data;
use crate::embedded::{self, Workers};
use crate::exit::Usage;
use crate::progress::say;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use windlass_engine::Folder;
use windlass_kernel::ExecutionId;
use windlass_secrets::Zeroizing;
use windlass_server::auth::OWNER_FILE;
use windlass_server::server_of;
use windlass_views::execution_id;

pub const URL_VARIABLE: &str = "WINDLASS_URL";
const TOKEN_VARIABLE: &str = "WINDLASS_TOKEN";
/// What others are told about the process while it holds the folder.
const WORKFLOWS: &str = "windlass workflows";
/// A longer file holds no token.
const TOKEN_MAX: u64 = 16 * 1024;

/// A data folder, or the server that is to be asked instead.
#[derive(Debug, clap::Args)]
pub struct At {
    #[command(flatten)]
    data: Data,
    /// Work at this server instead of in a data folder
    #[arg(long, env = URL_VARIABLE, value_name = "URL", global = true)]
    url: Option<String>,
    /// A file with the token for the server; the variable WINDLASS_TOKEN holds the token itself
    #[arg(long, env = "WINDLASS_TOKEN_FILE", value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

#[derive(Debug)]
pub enum Place {
    Folder(Data),
    Server(Rc<Client>),
}

impl At {
    /// Without a URL it is the data folder; if a server of this machine holds that, the server.
    pub fn place(&self) -> anyhow::Result<Place> {
        let local = server_of(self.data.folder());
        let given = self.given();
        let Some(url) = given.map(str::to_owned).or_else(|| local.clone()) else {
            return Ok(Place::Folder(self.data.clone()));
        };
        let is_local = local.is_some_and(|local| same(&local, &url));
        let token = self.token(is_local)?;
        let flag = if given.is_some() { url_flag(&url) } else { self.data.flag() };
        Ok(Place::Server(Rc::new(Client::of_server(&url, token, flag)?)))
    }

    /// The folder, for what only its owner does.
    pub fn data(&self) -> Result<&Data, Usage> {
        match self.given() {
            None => Ok(&self.data),
            Some(url) => {
                let what = format!("this works in a data folder and not at {url}");
                Err(Usage::new(what)
                    .hint("run it where the server's data folder is, without --url and WINDLASS_URL"))
            }
        }
    }

    fn given(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    /// The owner's token goes to the server that holds the folder and to no other.
    fn token(&self, is_local: bool) -> anyhow::Result<Option<Zeroizing<String>>> {
        if let Some(file) = &self.token_file {
            return read(file).map(Some);
        }
        if let Some(token) = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) {
            return Ok(Some(Zeroizing::new(token)));
        }
        let owner = self.data.folder().join(OWNER_FILE);
        if is_local && owner.exists() { read(&owner).map(Some) } else { Ok(None) }
    }
}

impl Place {
    /// What a command has to add to mean this place.
    pub fn flag(&self) -> String {
        match self {
            Place::Folder(data) => data.flag(),
            Place::Server(server) => server.flag().to_owned(),
        }
    }

    /// The API of the server, or of an engine that this process starts in the folder.
    pub fn api(&self, workers: Workers) -> anyhow::Result<Rc<Client>> {
        match self {
            Place::Server(server) => Ok(server.clone()),
            Place::Folder(data) => {
                let local = embedded::routes(data.folder(), WORKFLOWS, workers)?;
                Ok(Rc::new(Client::in_process(local, data.flag())?))
            }
        }
    }

    /// What messages call it.
    pub fn shown(&self) -> String {
        match self {
            Place::Folder(_) => "in this data folder".to_owned(),
            Place::Server(server) => format!("at {}", server.url()),
        }
    }

    /// The command that carries an execution on, to be copied. What a server has goes on by itself.
    pub fn resume(&self, id: ExecutionId) -> String {
        match self {
            Place::Folder(data) => data.resume(id),
            Place::Server(server) => {
                format!("windlass executions watch {}{}", execution_id(id), server.flag())
            }
        }
    }

    /// Who waits for something to happen should know when nothing can.
    pub fn nobody_works(&self, id: ExecutionId) {
        if let Place::Folder(data) = self
            && let Ok(None) = Folder::holder(data.folder())
        {
            say(&format!("nobody works on it at the moment; carry on with:\n  {}", data.resume(id)));
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    use std::io::Read as _;
    let mut text = Zeroizing::new(String::new());
    let opened = std::fs::File::open(file);
    opened
        .and_then(|opened| opened.take(TOKEN_MAX).read_to_string(&mut text))
        .with_context(|| format!("cannot read the token in {}", file.display()))
        .map_err(|error| Usage::new(format!("{error:#}")))?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}

/// Variables of the environment are there the next time, too.
fn url_flag(url: &str) -> String {
    let implied = std::env::var(URL_VARIABLE).is_ok_and(|implied| implied == url);
    if implied { String::new() } else { format!(" --url {url}") }
}

fn same(one: &str, other: &str) -> bool {
    let bare = |url: &str| url.trim_end_matches('/').replace("//localhost", "//127.0.0.1");
    bare(one) == bare(other)
}
