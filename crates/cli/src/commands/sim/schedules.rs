//! `windlass sim --schedules N`: schedules over simulated weeks.

use super::Sim;
use anyhow::Context;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;
use windlass_sim::schedules::{ScheduleCounts, ScheduleExtent, simulate};

impl Sim {
    pub(super) fn run_schedules(&self, schedules: u32) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let schedules = usize::try_from(schedules).context("too many schedules")?;
        let outcome = simulate(ScheduleExtent { seed: self.seed, schedules, days: self.days });
        let seconds = started.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        let (seed, days) = (self.seed, self.days);
        let counts = outcome.as_ref().copied().unwrap_or_default();
        let ScheduleCounts { steps, occurrences, runs, skipped, dead_letters, .. } = counts;
        let ScheduleCounts { crashes, freezes, clock_jumps, fenced, .. } = counts;
        if self.json {
            let violation =
                outcome.as_ref().err().map(|broken| json!({ "rule": broken.rule, "what": broken.what }));
            let summary = json!({
                "seed": seed, "schedules": schedules, "days": days, "steps": steps, "occurrences": occurrences,
                "runs": runs, "skipped": skipped, "deadLetters": dead_letters, "crashes": crashes,
                "freezes": freezes, "clockJumps": clock_jumps, "fencedWrites": fenced, "seconds": seconds,
                "violations": violation.into_iter().collect::<Vec<_>>(),
            });
            writeln!(out, "{summary}")?;
        } else if let Err(broken) = &outcome {
            writeln!(out, "seed {seed}: {broken}")?;
        } else {
            writeln!(
                out,
                "{schedules} schedules over {days} days: {occurrences} occurrences, {runs} runs, {skipped} skipped, {dead_letters} dead letters"
            )?;
            writeln!(
                out,
                "{crashes} crashes, {freezes} freezes, {clock_jumps} jumps of the clock, {fenced} writes refused"
            )?;
            writeln!(out, "no rule was broken")?;
            eprintln!("{seconds:.1} s");
        }
        Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
