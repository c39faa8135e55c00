//! `windlass bench`: measures the engine with everything synced to disk, and checks its results. docs/benchmarks.md
//! describes each benchmark.

mod backlog;
mod chain;
mod commits;
mod figures;
mod footprint;
mod gates;
mod http;
mod limit;
mod load;
mod machine;
mod nets;
mod progress;
mod result;
mod rig;
mod rounds;
mod schedules;
mod trace;
mod verify;
mod watched;
mod worker;
mod workers;

use anyhow::Context;
use progress::Progress;
use result::BenchResult;
use rig::{Rig, Setup};
use serde_json::{Map, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verify::Expected;

/// Measure the engine with everything synced to disk
#[derive(Debug, clap::Args)]
pub struct Bench {
    name: Name,
    /// Duration of the measurement, unless the benchmark itself determines it
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Number of executions at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Folder in which the fresh folder with the store is created; by default the current directory
    #[arg(long, env = "WINDLASS_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Replay all journals afterwards and compare them with the rows (the default)
    #[arg(long, conflicts_with = "no_verify")]
    verify: bool,
    /// Print figures without checking the journals
    #[arg(long)]
    no_verify: bool,
    /// Check for every answer that its facts were on disk before; slower
    #[arg(long)]
    trace: bool,
    /// chain: measure again after that many ended executions have been stored
    #[arg(long, value_name = "N")]
    stored: Option<usize>,
    /// backlog: executions that wait on timers
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    backlog: usize,
    /// http: steps of one tenant that wait while another's is timed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queued: usize,
    /// schedules: number of schedules
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=20_000))]
    schedules: u64,
    /// Keep the folder with the store
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// Ten steps one after another, many executions at a time
    Chain,
    /// One execution of one step at a time
    Single,
    /// 1,000 parallel steps and a join
    Fanout,
    /// One chain of 5,000 steps
    Long,
    /// One loop of 10,000 iterations
    Loop,
    /// Chain, while a million executions wait on timers
    Backlog,
    /// One chain, while 10,000 tokens of its execution wait at a gate
    Gates,
    /// Chain with outputs of 4 KB
    Payload,
    /// Starts over HTTP, and single steps of one tenant next to the queue of another
    Http,
    /// 10,000 schedules, idle, and 1,000 of them due in one second
    Schedules,
    /// Chains that a worker process does over HTTP
    Workers,
    /// Start, memory, disk
    Footprint,
    /// Throughput of disk and store without the engine
    Limit,
    All,
    /// Opens a store, reports that it is ready, and waits for the end of its input; started by `footprint`
    #[value(hide = true)]
    Ready,
}

const ALL: [Name; 13] = [
    Name::Chain,
    Name::Single,
    Name::Fanout,
    Name::Long,
    Name::Loop,
    Name::Backlog,
    Name::Gates,
    Name::Payload,
    Name::Http,
    Name::Schedules,
    Name::Workers,
    Name::Footprint,
    Name::Limit,
];

impl Bench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match self.name {
            Name::Ready => footprint::ready(self.data.as_deref().context("--data is missing")?)?,
            Name::All => self.run_all()?,
            name => {
                let result = self.measure(name)?;
                self.print(&result)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn run_all(&self) -> anyhow::Result<()> {
        let mut all = Map::new();
        for name in ALL {
            let result = self.measure(name)?;
            if self.json {
                all.insert(result.name.to_owned(), result.json());
            } else {
                self.print(&result)?;
            }
        }
        if self.json { Ok(writeln!(std::io::stdout(), "{}", Value::Object(all))?) } else { Ok(()) }
    }

    fn print(&self, result: &BenchResult) -> anyhow::Result<()> {
        let text = if self.json { result.json().to_string() } else { result.table() };
        Ok(writeln!(std::io::stdout(), "{text}")?)
    }

    fn measure(&self, name: Name) -> anyhow::Result<BenchResult> {
        let folder = self.folder()?;
        let site = Site { bench: self, folder: folder.path(), progress: Progress::new() };
        let filesystem = machine::filesystem(site.folder);
        if machine::is_in_memory(&filesystem) {
            eprintln!(
                "warning: {} is on {filesystem}, which is in memory and not on a disk",
                site.folder.display()
            );
        }
        let measured = site.measure(name);
        site.progress.clear();
        if self.keep {
            eprintln!("the store is kept in {}", folder.keep().display());
        }
        measured
    }

    /// The default folder of the system for temporary files may be in memory.
    fn folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let parent = self.data.as_deref().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent)
            .and_then(|()| tempfile::Builder::new().prefix("bench-").tempdir_in(parent))
            .with_context(|| format!("cannot create a folder in {}", parent.display()))
    }

    fn verifies(&self) -> bool {
        self.verify || !self.no_verify
    }
}

/// One benchmark in its folder.
struct Site<'b> {
    bench: &'b Bench,
    folder: &'b Path,
    progress: Progress,
}

impl Site<'_> {
    fn measure(&self, name: Name) -> anyhow::Result<BenchResult> {
        match name {
            Name::Chain => chain::chain(self),
            Name::Payload => chain::payload(self),
            Name::Single => chain::single(self),
            Name::Fanout => rounds::fanout(self),
            Name::Long => rounds::long(self),
            Name::Loop => rounds::looped(self),
            Name::Backlog => backlog::backlog(self),
            Name::Gates => gates::gates(self),
            Name::Http => http::http(self),
            Name::Schedules => schedules::schedules(self),
            Name::Workers => workers::workers(self),
            Name::Footprint => footprint::footprint(self),
            Name::Limit => limit::limit(self),
            Name::All | Name::Ready => unreachable!("these are not measured by themselves"),
        }
    }

    fn rig(&self, setup: Setup) -> anyhow::Result<Rig> {
        Rig::open(self.folder, Setup { trace: self.bench.trace, ..setup })
    }

    /// Ends the run, and compares its results with the expected ones.
    fn finish(&self, rig: Rig, result: BenchResult, expected: &[Expected]) -> anyhow::Result<BenchResult> {
        let tally = rig.tally().clone();
        self.progress.phase("closing");
        rig.close()?;
        let mut result = result.counted(&tally);
        if let Some(trace) = &tally.trace {
            result = result.traced(&trace.findings())?;
        }
        if self.bench.verifies() {
            self.progress.phase("verifying");
            let verified = verify::verify(self.folder, expected, &self.progress)?;
            result = result.verified(&verified);
        }
        Ok(result)
    }
}
