//! Log lines of the server, on stderr.

use crate::settings::{LogFormat, Settings};
use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Installs the logger of the settings.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<()> {
    let filter =
        EnvFilter::builder().parse(&settings.log).with_context(|| format!("log: `{}`", settings.log))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match settings.log_format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot install the logger: {error}"))
}
