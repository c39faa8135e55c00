//! `windlass sim --system`: engine, store and workers on simulated time, disks, networks and processes.

use super::{Sim, counted, keep};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use windlass_sim::system::campaign::{self, Summary};
use windlass_sim::system::{Violation, describe};

impl Sim {
    pub(super) fn run_system(&self) -> anyhow::Result<ExitCode> {
        if self.events {
            print!("{}", describe(self.seed));
            return Ok(ExitCode::SUCCESS);
        }
        let started = Instant::now();
        let shows = std::io::stderr().is_terminal();
        let progress = |summary: &Summary| {
            if shows {
                eprint!("\r{}", self.progress(summary.counts.executions));
            }
        };
        let summary = campaign::run(self.seed, self.extent(started), &progress);
        if shows {
            eprint!("\r\x1b[K");
        }
        let seconds = started.elapsed().as_secs_f64();
        let kept = self.keep_systems(&summary.violations)?;
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", self.system_json(&summary, &kept, seconds))?,
            false => self.print_system(&mut out, &summary, &kept, seconds)?,
        }
        Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn keep_systems(&self, violations: &[Box<Violation>]) -> anyhow::Result<Vec<PathBuf>> {
        violations.iter().map(|violation| keep(&self.keep, violation.seed, violation)).collect()
    }

    fn system_json(&self, summary: &Summary, kept: &[PathBuf], seconds: f64) -> serde_json::Value {
        let to_json = |violation: &Violation, file: &PathBuf| json!({ "seed": violation.seed, "rule": violation.rule, "what": violation.what, "file": file });
        let counts = &summary.counts;
        json!({
            "firstSeed": self.seed,
            "seeds": summary.seeds,
            "executions": counts.executions,
            "commits": counts.commits,
            "engineDeaths": counts.engine_deaths,
            "workerDeaths": counts.worker_deaths,
            "failedWrites": counts.failed_writes,
            "messages": counts.messages,
            "messagesLost": counts.lost,
            "messagesDoubled": counts.doubled,
            "mail": counts.mail,
            "undoneSagas": counts.undone_sagas,
            "ends": summary.ends,
            "seconds": seconds,
            "violations": summary.violations.iter().zip(kept).map(|(violation, file)| to_json(violation, file)).collect::<Vec<_>>(),
        })
    }

    fn print_system(
        &self,
        out: &mut impl Write,
        summary: &Summary,
        kept: &[PathBuf],
        seconds: f64,
    ) -> anyhow::Result<()> {
        let counts = &summary.counts;
        eprintln!("{seconds:.1} s, {:.0} executions/s", counts.executions as f64 / seconds.max(1e-9));
        for (end, count) in &summary.ends {
            writeln!(out, "{count:>9}  {end}")?;
        }
        writeln!(
            out,
            "{} in {} from seed {} on, each run twice: {} commits",
            counted(counts.executions, "execution"),
            counted(summary.seeds, "world"),
            self.seed,
            counts.commits
        )?;
        writeln!(
            out,
            "the engine died {} times and workers {} times; {} writes failed; of {} messages {} were lost and {} doubled",
            counts.engine_deaths,
            counts.worker_deaths,
            counts.failed_writes,
            counts.messages,
            counts.lost,
            counts.doubled
        )?;
        for (violation, file) in summary.violations.iter().zip(kept) {
            let Violation { seed, rule, what, .. } = &**violation;
            writeln!(out, "seed {seed}: {rule}: {what} (kept in {})", file.display())?;
        }
        match summary.violations.len() {
            0 => writeln!(out, "no rule was broken")?,
            count => {
                let seeds = counted(count as u64, "seed");
                writeln!(
                    out,
                    "{seeds} broke a rule; `windlass sim --system --seed N --events` prints the events of one"
                )?;
            }
        }
        Ok(())
    }
}
