//! `windlass secrets`: values that steps may use and that are never shown.

use super::counted;
use super::report::print_json;
use crate::api::{ApiTarget, Client, Need};
use crate::data::Data;
use crate::exit::Usage;
use crate::format::{plain, since};
use crate::progress::say;
use anyhow::Context;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{IsTerminal, Read, Write, stdin};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_engine::make_private;
use windlass_secrets::{VALUE_MAX, Weakness, Zeroizing, check_name, check_value};
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::vault::LocalVault;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass secrets";

/// Manage the secrets of steps
///
/// Values are stored encrypted in the data folder and never shown again. The key is in DATA/master.key, which only its
/// owner can read, or in WINDLASS_MASTER_KEY: 32 bytes in base64, several with commas between them, the first of which
/// encrypts. In the output, results and failures of a step, its secrets are replaced by [redacted], unless they can be
/// guessed.
#[derive(Debug, clap::Args)]
pub struct Secrets {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    Set(Set),
    List(List),
    Delete(Delete),
    Rotate(Rotate),
}

/// Store a value under a name, or a new value
///
/// The value comes from standard input, or from a prompt on a terminal that does not show it; it is never an argument,
/// which other processes could see. One trailing line end is removed. It has at least 4 bytes.
#[derive(Debug, clap::Args)]
struct Set {
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List names, versions and times
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete a secret
#[derive(Debug, clap::Args)]
struct Delete {
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Encrypt all secrets with a new master key
///
/// With DATA/master.key a new key is created and the old one is deleted. With WINDLASS_MASTER_KEY put the new key in
/// front of the old one, rotate, then remove the old one.
#[derive(Debug, clap::Args)]
struct Rotate {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Secrets {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        make_private();
        match &self.command {
            Command::Set(set) => set.run(&self.target)?,
            Command::List(list) => list.run(&self.target)?,
            Command::Delete(delete) => delete.run(&self.target)?,
            Command::Rotate(rotate) => rotate.run(self.target.data()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Set {
    /// Sets a secret. The name and the value are checked before anything is created.
    fn run(&self, target: &ApiTarget) -> anyhow::Result<()> {
        let refused = |error: windlass_secrets::Refused| Usage::new(error.to_string());
        check_name(&self.name).map_err(refused)?;
        let value = self.value()?;
        check_value(&value).map_err(refused)?;
        let body = json!({ "value": *value });
        let set = |client: &Rc<Client>| Ok(client.send(Method::PUT, &["secrets", &self.name], &body)?);
        let secret = target.with((COMMAND, Need::Change), set)?;
        if let Some(weakness) = Weakness::of(&value) {
            say(&format!("warning: secret `{}`: {weakness}", self.name));
        }
        match self.json {
            true => print_json(&secret),
            false => {
                say(&format!("secret `{}` is set (version {})", self.name, secret["version"]));
                Ok(())
            }
        }
    }

    fn value(&self) -> anyhow::Result<Zeroizing<String>> {
        if stdin().is_terminal() {
            let asked = rpassword::prompt_password(format!("value of `{}` (not shown): ", self.name));
            return asked.map(Zeroizing::new).context("cannot ask for the value");
        }
        let mut bytes = Zeroizing::new(Vec::new());
        // One more than fits, and a line end.
        stdin().take(VALUE_MAX as u64 + 3).read_to_end(&mut bytes).context("cannot read standard input")?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            let hint = "encode it, for example with `base64`, and decode it in the step";
            return Err(Usage::new("the value is not UTF-8 text").hint(hint).into());
        };
        let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
        Ok(Zeroizing::new(text.to_owned()))
    }
}

impl List {
    fn run(&self, target: &ApiTarget) -> anyhow::Result<()> {
        target.check_exists()?;
        let mut listed = target.with((COMMAND, Need::Read), |client| Ok(client.get(&["secrets"], &[])?))?;
        let secrets = listed["secrets"].as_array_mut().map(std::mem::take).unwrap_or_default();
        if self.json {
            return print_json(&json!({ "secrets": secrets }));
        }
        let mut out = std::io::stdout().lock();
        let text = |secret: &Value, key: &str| secret[key].as_str().unwrap_or("-").to_owned();
        let width = secrets.iter().map(|secret| text(secret, "name").len()).max().unwrap_or(0);
        for secret in &secrets {
            let (name, version) = (plain(&text(secret, "name")), secret["version"].to_string());
            let age = since(&text(secret, "updatedAt"));
            writeln!(out, "{name:width$}  version {version:<4} {age:>6} ago")?;
        }
        Ok(())
    }
}

impl Delete {
    fn run(&self, target: &ApiTarget) -> anyhow::Result<()> {
        target.check_exists()?;
        target.with((COMMAND, Need::Change), |client| {
            match client.text(client.request(Method::DELETE, &["secrets", &self.name])) {
                Ok(_) => Ok(()),
                Err(error) if error.is_missing() => {
                    let what = format!("there is no secret `{}`", plain(&self.name));
                    let hint = format!("`windlass secrets list{}` shows the names", client.flag());
                    Err(Usage::new(what).hint(hint).into())
                }
                Err(error) => Err(error.into()),
            }
        })?;
        match self.json {
            true => print_json(&json!({ "name": self.name, "deleted": true })),
            false => {
                say(&format!("secret `{}` is deleted", self.name));
                Ok(())
            }
        }
    }
}

impl Rotate {
    /// Rotates the master key. Only the owner of the folder has its keys; a running engine reads the new key by
    /// itself.
    fn run(&self, data: &Data) -> anyhow::Result<()> {
        data.check_exists()?;
        let rotated = LocalVault::of(data.folder(), EngineSecrets::from_environment())?.rotate()?;
        match self.json {
            true => print_json(&json!({ "keyId": rotated.key, "secrets": rotated.secrets })),
            false => {
                let secrets = counted(rotated.secrets, "secret");
                say(&format!("{secrets} under the new master key {}", rotated.key));
                Ok(())
            }
        }
    }
}
