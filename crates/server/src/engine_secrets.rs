//! The engine's own secrets, which come from the environment and which no step may read.
//!
//! A process cannot remove a variable from its initial environment, which other processes of the same user can read under
//! /proc. A server therefore restarts itself without these variables, and passes them through a pipe.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use windlass_secrets::{ENGINE_VARIABLES, HANDED_OVER_VARIABLE, Zeroizing};

/// Maximum bytes of all secrets: they must fit into a pipe, because the new program is its only reader.
const HANDED_MAX: usize = 60 * 1024;

/// Secrets by the names of their variables.
#[derive(Clone, Default)]
pub struct EngineSecrets(Arc<BTreeMap<String, Zeroizing<String>>>);

impl EngineSecrets {
    /// Reads the secrets from the environment.
    #[must_use]
    pub fn from_environment() -> EngineSecrets {
        EngineSecrets::find(ENGINE_VARIABLES.iter())
    }

    fn find<'n>(names: impl Iterator<Item = &'n &'n str>) -> EngineSecrets {
        let found = names.filter_map(|name| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            Some(((*name).to_owned(), Zeroizing::new(value)))
        });
        EngineSecrets(Arc::new(found.collect()))
    }

    /// Moves the secrets and these other variables out of the environment. This may restart the program with its arguments.
    pub fn take_from_environment(others: &[&str]) -> anyhow::Result<EngineSecrets> {
        deny_inspection()?;
        if std::env::var_os(HANDED_OVER_VARIABLE).is_some() {
            return EngineSecrets::read_stdin();
        }
        let found = EngineSecrets::find(ENGINE_VARIABLES.iter().chain(others));
        if found.0.is_empty() { Ok(found) } else { Err(found.restart()) }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.as_str())
    }

    fn read_stdin() -> anyhow::Result<EngineSecrets> {
        let mut text = Zeroizing::new(String::new());
        std::io::stdin().read_to_string(&mut text).context("cannot read the secrets on standard input")?;
        let read: BTreeMap<String, String> =
            serde_json::from_str(&text).context("cannot read the secrets on standard input")?;
        let secrets = read.into_iter().map(|(name, value)| (name, Zeroizing::new(value)));
        Ok(EngineSecrets(Arc::new(secrets.collect())))
    }

    /// Restarts the program without the secrets in its environment. Returns only on failure.
    fn restart(&self) -> anyhow::Error {
        match self.restart_command() {
            Ok(mut command) => anyhow::Error::from(command.exec())
                .context("cannot restart without the secrets in the environment"),
            Err(error) => error,
        }
    }

    fn restart_command(&self) -> anyhow::Result<Command> {
        let plain: BTreeMap<&str, &str> =
            self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = Zeroizing::new(serde_json::to_string(&plain)?);
        if text.len() > HANDED_MAX {
            bail!("the secrets in the environment have more than {HANDED_MAX} bytes in total");
        }
        let (reader, mut writer) = std::io::pipe().context("cannot create a pipe")?;
        writer.write_all(text.as_bytes()).context("cannot pass on the secrets")?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).env(HANDED_OVER_VARIABLE, "1").stdin(reader);
        for name in ENGINE_VARIABLES.into_iter().chain(plain.into_keys()) {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Prevents other processes of the same user, such as steps, from reading the memory and the environment of this process
/// under /proc, and from attaching a debugger. Child programs are not affected.
pub(crate) fn deny_inspection() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .context("cannot protect the memory of this process from other processes")?;
    Ok(())
}

impl fmt::Debug for EngineSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
