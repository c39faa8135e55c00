//! `windlass`: thin commands over the crates. Data goes to stdout, words to stderr.

mod commands;

use clap::{CommandFactory, Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// A durable workflow engine: what was committed is never lost and never silently run again.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sim(commands::sim::Sim),
    Validate(commands::validate::Validate),
    /// Print completions for a shell
    Completions {
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Sim(sim) => sim.run(),
        Command::Validate(validate) => validate.run(),
        Command::Completions { shell } => {
            // Made whole first: the generator panics when its writer fails, and a reader may hang up.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut script);
            std::io::stdout().write_all(&script).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
