//! `windlass sim`: simulates the kernel, or the whole system, in random worlds, and checks it with an oracle.

mod schedules;
mod system;

use super::counted;
use anyhow::Context;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use windlass_sim::campaign::{self, Extent, Summary};
use windlass_sim::world::{Violation, Worlds};

/// Run simulated executions and check every rule on them
#[derive(Debug, clap::Args)]
pub struct Sim {
    /// The first seed; a seed determines everything that happens
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of executions to simulate, one seed each; with --system a minimum, several in a seed
    #[arg(long, default_value_t = 1)]
    executions: u64,
    /// Simulate as many executions as this many seconds allow, instead of a number of them
    #[arg(long, conflicts_with = "executions")]
    seconds: Option<u64>,
    /// Simulate the whole system: engine, store, workers, network, crashes
    #[arg(long)]
    system: bool,
    /// Simulate actions only: graphs of up to 60 that fail and are compensated
    #[arg(long, conflicts_with = "system")]
    sagas: bool,
    /// Simulate this many schedules over some weeks: crashes and pauses of servers, jumps of the clock, daylight saving time
    #[arg(long, value_name = "N", conflicts_with_all = ["system", "sagas", "executions", "seconds", "events"])]
    schedules: Option<u32>,
    /// Simulated days of schedules
    #[arg(long, value_name = "N", default_value_t = 31, requires = "schedules", value_parser = clap::value_parser!(u32).range(1..=400))]
    days: u32,
    /// Print the events and the journal of the first seed
    #[arg(long)]
    events: bool,
    /// Folder for the events of failing seeds
    #[arg(long, default_value = "sim-failures", value_name = "DIR")]
    keep: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Sim {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(schedules) = self.schedules {
            return self.run_schedules(schedules);
        }
        if self.system {
            return self.run_system();
        }
        if self.events {
            print!("{}", self.worlds().describe(self.seed));
            return Ok(ExitCode::SUCCESS);
        }
        let started = Instant::now();
        let shows = std::io::stderr().is_terminal();
        let progress = |executions: u64| {
            if shows {
                eprint!("\r{}", self.progress(executions));
            }
        };
        let summary = campaign::run(self.worlds(), self.seed, self.extent(started), &progress);
        if shows {
            eprint!("\r\x1b[K");
        }
        let seconds = started.elapsed().as_secs_f64();
        let kept = self.keep_violations(&summary.violations)?;
        self.print(&summary, &kept, seconds)?;
        Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn worlds(&self) -> Worlds {
        if self.sagas { Worlds::Sagas } else { Worlds::Any }
    }

    fn progress(&self, executions: u64) -> String {
        match self.seconds {
            Some(seconds) => format!("{executions} executions, within {seconds} s"),
            None => format!("{executions} of {} executions", self.executions),
        }
    }

    fn extent(&self, started: Instant) -> Extent {
        let until = |seconds| Extent::Until(started + Duration::from_secs(seconds));
        self.seconds.map_or(Extent::Executions(self.executions), until)
    }

    fn keep_violations(&self, violations: &[Box<Violation>]) -> anyhow::Result<Vec<PathBuf>> {
        violations.iter().map(|violation| keep(&self.keep, violation.seed, violation)).collect()
    }

    fn print(&self, summary: &Summary, kept: &[PathBuf], seconds: f64) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            let violations: Vec<_> = summary.violations.iter().zip(kept).map(|(violation, file)| {
                json!({ "seed": violation.seed, "rule": violation.rule, "what": violation.what, "file": file })
            }).collect();
            let summary = json!({
                "firstSeed": self.seed,
                "executions": summary.executions,
                "events": summary.events,
                "ends": summary.ends,
                "unjudged": summary.unjudged,
                "seconds": seconds,
                "violations": violations,
            });
            writeln!(out, "{summary}")?;
            return Ok(());
        }
        for (end, count) in &summary.ends {
            writeln!(out, "{count:>9}  {end}")?;
        }
        // Standard output is the same for the same seed, so the duration is printed to stderr.
        eprintln!("{seconds:.1} s, {:.0} executions/s", summary.executions as f64 / seconds.max(1e-9));
        writeln!(
            out,
            "{} from seed {} on, each run twice: {} events",
            counted(summary.executions, "execution"),
            self.seed,
            summary.events
        )?;
        for (violation, file) in summary.violations.iter().zip(kept) {
            writeln!(
                out,
                "seed {}: {}: {} (kept in {})",
                violation.seed,
                violation.rule,
                violation.what,
                file.display()
            )?;
        }
        if summary.unjudged > 0 {
            writeln!(
                out,
                "{} had too many readings for the oracle and were not checked to their end",
                counted(summary.unjudged, "execution")
            )?;
        }
        match summary.violations.len() {
            0 => writeln!(out, "no rule was broken")?,
            count => {
                let seeds = counted(count, "seed");
                writeln!(
                    out,
                    "{seeds} broke a rule; `windlass sim --seed N --events` prints the events of one"
                )?;
            }
        }
        Ok(())
    }
}

fn keep(folder: &Path, seed: u64, violation: &impl std::fmt::Display) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("seed-{seed}.txt"));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    std::fs::write(&file, violation.to_string())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
