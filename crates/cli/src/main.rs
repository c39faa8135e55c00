//! The command line: thin commands over the crates. Data is printed to stdout, messages to stderr.

mod adapters;
mod api;
mod commands;
mod data;
mod embedded;
mod exit;
mod follow;
mod format;
mod ids;
mod progress;
mod signals;
mod text;

use clap::{CommandFactory, Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Values are often allocated on one thread and freed on another, for which this allocator is made.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable workflow engine: committed work is never lost and never silently run again.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::Run),
    Serve(commands::serve::Serve),
    Validate(commands::validate::Validate),
    Schema(commands::schema::Schema),
    Graph(commands::graph::Graph),
    Workflows(commands::workflows::Workflows),
    Executions(commands::executions::Executions),
    Tasks(commands::tasks::Tasks),
    Schedules(commands::schedules::Schedules),
    Runs(commands::runs::Runs),
    DeadLetters(commands::dead_letters::DeadLetters),
    Evidence(commands::evidence::Evidence),
    Secrets(commands::secrets::Secrets),
    Tokens(commands::tokens::Tokens),
    Page(commands::page::Page),
    Worker(commands::worker::Worker),
    Workers(commands::workers::Workers),
    Plans(commands::plans::Plans),
    Actions(commands::actions::Actions),
    Clusters(commands::routing::Clusters),
    Sandboxes(commands::routing::Sandboxes),
    RouteGroups(commands::routing::RouteGroups),
    Admin(commands::admin::Admin),
    Bench(commands::bench::Bench),
    Sim(commands::sim::Sim),
    /// Print a completion script for a shell
    Completions {
        shell: clap_complete::Shell,
    },
    /// Runs a step's program and supervises all processes that it starts
    #[command(name = embedded::SUPERVISE, hide = true)]
    Supervise {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<std::ffi::OsString>,
    },
    /// Runs one computation for the pool, in a process with limits of its own
    #[command(name = embedded::SANDBOX, hide = true)]
    Sandbox,
    /// Lets scripts of workflow nodes call the engine; see docs/nodes.md
    #[command(hide = true)]
    Node {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

impl Command {
    /// Reports that a command ignores the server that the environment names.
    fn warn_if_local(&self) {
        let is_local = matches!(self, Command::Admin(_) | Command::Bench(_) | Command::Sim(_));
        if is_local && std::env::var_os(api::URL_VARIABLE).is_some_and(|url| !url.is_empty()) {
            progress::say(&format!("note: {} is set; this command works on this machine", api::URL_VARIABLE));
        }
    }

    /// Sets the page size before memory is used; a supervisor passes the worker's original setting to its program.
    fn take_small_pages(&self) {
        if !matches!(self, Command::Supervise { .. }) {
            windlass_server::huge_pages::avoid();
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    command.warn_if_local();
    command.take_small_pages();
    let done = match command {
        Command::Run(run) => run.run(),
        Command::Serve(serve) => serve.run(),
        Command::Validate(validate) => validate.run(),
        Command::Schema(schema) => schema.run(),
        Command::Graph(graph) => graph.run(),
        Command::Workflows(workflows) => workflows.run(),
        Command::Executions(executions) => executions.run(),
        Command::Tasks(tasks) => tasks.run(),
        Command::Schedules(schedules) => schedules.run(),
        Command::Runs(runs) => runs.run(),
        Command::DeadLetters(letters) => letters.run(),
        Command::Evidence(evidence) => evidence.run(),
        Command::Secrets(secrets) => secrets.run(),
        Command::Tokens(tokens) => tokens.run(),
        Command::Page(page) => page.run(),
        Command::Worker(worker) => worker.run(),
        Command::Workers(workers) => workers.run(),
        Command::Plans(plans) => plans.run(),
        Command::Actions(actions) => actions.run(),
        Command::Clusters(clusters) => clusters.run(),
        Command::Sandboxes(sandboxes) => sandboxes.run(),
        Command::RouteGroups(groups) => groups.run(),
        Command::Admin(admin) => admin.run(),
        Command::Bench(bench) => bench.run(),
        Command::Sim(sim) => sim.run(),
        Command::Supervise { argv } => commands::internal::supervise(&argv),
        Command::Sandbox => commands::internal::sandbox(),
        Command::Node { args } => commands::internal::call_node(&args),
        Command::Completions { shell } => {
            // The whole text is built first: the generator panics when its writer fails, and a reader may close the
            // pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut script);
            std::io::stdout().write_all(&script).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    };
    done.unwrap_or_else(|error| {
        if !is_hung_up(&error) {
            progress::say(&format!("error: {error:#}"));
        }
        ExitCode::from(exit::of_error(&error))
    })
}

/// Returns whether the reader of stdout has closed it, which needs no report.
fn is_hung_up(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
