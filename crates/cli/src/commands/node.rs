//! What scripts of workflow nodes ask through, as `windlass-node`.

use std::io::Write;
use std::process::ExitCode;

pub fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let told = windlass_worker::node::helper::run(args, |name| std::env::var(name).ok());
    if let Some(value) = told.map_err(anyhow::Error::msg)? {
        // A text as it is: scripts would have to take it out of its quotes.
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(std::io::stdout(), "{text}")?;
    }
    Ok(ExitCode::SUCCESS)
}
