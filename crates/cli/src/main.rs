//! `windlass`: thin commands over the crates. Data goes to stdout, words to stderr.

mod commands;

use clap::{CommandFactory, Parser, Subcommand};
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
            clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
