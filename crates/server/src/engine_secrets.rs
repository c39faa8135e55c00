//! The engine's own secrets: what the environment gave it, and no step may have.
//!
//! A process cannot take a variable out of the environment that it was started with: other processes of the same user
//! read that under /proc. A server therefore starts itself anew without them and hands them over through a pipe.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use windlass_secrets::{ENGINE_VARIABLES, Zeroizing};

/// Says that the secrets come through standard input.
const HANDED_OVER: &str = "WINDLASS_SECRETS_ON_STDIN";
/// What a pipe surely holds: nobody reads it before the new program does.
const HANDED_MAX: usize = 60 * 1024;

/// Variables by their names.
#[derive(Clone, Default)]
pub struct EngineSecrets(Arc<BTreeMap<String, Zeroizing<String>>>);

impl EngineSecrets {
    /// As the environment has them now.
    #[must_use]
    pub fn from_environment() -> EngineSecrets {
        let found = ENGINE_VARIABLES.iter().filter_map(|name| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            Some(((*name).to_owned(), Zeroizing::new(value)))
        });
        EngineSecrets(Arc::new(found.collect()))
    }

    /// The same, and the environment has them no more. The program may be started anew by this, with its arguments.
    pub fn take_from_environment() -> anyhow::Result<EngineSecrets> {
        deny_inspection()?;
        if std::env::var_os(HANDED_OVER).is_some() {
            return EngineSecrets::read_stdin();
        }
        let found = EngineSecrets::from_environment();
        if found.0.is_empty() { Ok(found) } else { Err(found.restart()) }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.as_str())
    }

    fn read_stdin() -> anyhow::Result<EngineSecrets> {
        let mut text = Zeroizing::new(String::new());
        std::io::stdin()
            .read_to_string(&mut text)
            .context("the secrets that were handed over cannot be read")?;
        let read: BTreeMap<String, String> =
            serde_json::from_str(&text).context("the secrets that were handed over cannot be read")?;
        let secrets = read.into_iter().map(|(name, value)| (name, Zeroizing::new(value)));
        Ok(EngineSecrets(Arc::new(secrets.collect())))
    }

    /// Comes back only when it does not work.
    fn restart(&self) -> anyhow::Error {
        match self.restart_command() {
            Ok(mut command) => {
                anyhow::Error::from(command.exec()).context("cannot start anew without the secrets")
            }
            Err(error) => error,
        }
    }

    fn restart_command(&self) -> anyhow::Result<Command> {
        let plain: BTreeMap<&str, &str> =
            self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = Zeroizing::new(serde_json::to_string(&plain)?);
        if text.len() > HANDED_MAX {
            bail!("the secrets in the environment are longer than {HANDED_MAX} bytes in all");
        }
        let (reader, mut writer) = std::io::pipe().context("the system gives no pipe")?;
        writer.write_all(text.as_bytes()).context("the secrets cannot be handed over")?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).env(HANDED_OVER, "1").stdin(reader);
        for name in ENGINE_VARIABLES {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Keeps other processes of the same user, which steps are, from reading the memory and the environment of this one
/// under /proc, and from attaching a debugger. Programs that are started get that right back.
pub fn deny_inspection() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .context("the memory of this process cannot be protected from other processes")?;
    Ok(())
}

impl fmt::Debug for EngineSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
