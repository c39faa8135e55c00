//! `windlass serve`: the server, with every setting of its table as a flag.

use crate::data::Data;
use crate::exit::Usage;
use crate::progress::say;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;
use windlass_server::OWNER_FILE;
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::settings::{Kind, SETTINGS, Setting, Settings};
use windlass_server::{Server, serve};

#[derive(Debug)]
pub struct Serve {
    flags: BTreeMap<&'static str, String>,
}

impl Serve {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let others = Settings::secret_variables(&self.flags, |name| std::env::var(name).ok());
        let secrets = EngineSecrets::take_from_environment(others)?;
        let variable = |name: &str| secrets.get(name).map(str::to_owned).or_else(|| std::env::var(name).ok());
        let settings = Settings::load(&self.flags, variable).map_err(|bad| Usage::new(bad.to_string()))?;
        let data = Data::of(settings.data.clone());
        let is_first = !data.folder().join(OWNER_FILE).exists();
        serve(settings, secrets, |server| report_start(server, &data, is_first))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints how to reach the server; in a new folder with first steps. The last line reports that it is ready.
fn report_start(server: &Server, data: &Data, is_first: bool) {
    for warning in server.warnings() {
        say(&format!("warning: {warning}"));
    }
    if let Some(file) = server.owner_file() {
        say(&format!("the owner's token is in {}", file.display()));
    }
    match server.url() {
        Ok(url) => {
            if is_first {
                say(&first_steps(&url, &data.flag()));
            }
            report_page(server);
            say(&format!("listening on {url}"));
        }
        Err(error) => say(&format!("listening on an unknown address: {error}")),
    }
}

/// Prints a link for a browser, but only to a terminal, because a log has other readers.
fn report_page(server: &Server) {
    if !stderr().is_terminal() {
        return say("`windlass page` prints a link that opens the web page");
    }
    match server.sign_in_url() {
        Ok(link) => say(&format!("open it in a browser (the link works once, within 15 minutes):\n  {link}")),
        Err(error) => say(&format!("warning: cannot create a link to the web page: {error:#}")),
    }
}

fn first_steps(url: &str, flag: &str) -> String {
    format!(
        "commands in this folder find the server and the token by themselves; in another terminal, try:
  windlass run FILE{flag}
  windlass executions list{flag}
from elsewhere:
  export WINDLASS_URL={url} WINDLASS_TOKEN=…"
    )
}

/// Arguments of the command. The table of settings is the only list of flags.
impl clap::Args for Serve {
    fn augment_args(command: Command) -> Command {
        let about = "Serve workflows over HTTP";
        let more = "Settings come from flags, from the environment (WINDLASS_LISTEN for --listen), and from a TOML \
                    file, in this order. docs/settings.md lists them.";
        let command = command.about(about).long_about(format!("{about}\n\n{more}"));
        command.args(SETTINGS.iter().filter(|setting| setting.is_flag()).map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Serve::augment_args(command)
    }
}

fn arg(setting: &'static Setting) -> Arg {
    let shown = if setting.default.is_empty() || setting.kind == Kind::Switch {
        setting.what.to_owned()
    } else {
        format!("{} [default: {}]", setting.what, setting.default)
    };
    let arg = Arg::new(setting.name).long(setting.name).help(shown).action(ArgAction::Set);
    match setting.kind {
        Kind::Switch => {
            arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL")
        }
        Kind::Path => arg.value_name("PATH"),
        Kind::Address => arg.value_name("ADDR"),
        Kind::Count => arg.value_name("N"),
        Kind::Bytes => arg.value_name("BYTES"),
        Kind::Duration => arg.value_name("TIME"),
        Kind::Text | Kind::Secret => arg.value_name("TEXT"),
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Serve, clap::Error> {
        let flags = SETTINGS.iter().filter(|setting| setting.is_flag()).filter_map(|setting| {
            matches.get_one::<String>(setting.name).map(|text| (setting.name, text.clone()))
        });
        Ok(Serve { flags: flags.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Serve::from_arg_matches(matches)?;
        Ok(())
    }
}
