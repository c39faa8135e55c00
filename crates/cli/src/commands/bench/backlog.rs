//! Chains while many executions wait on timers.

use super::figures::rate;
use super::load::start_of;
use super::result::BenchResult;
use super::rig::{Rig, Setup};
use super::verify::Expected;
use super::{Site, chain, nets};
use anyhow::bail;
use crossbeam_channel::bounded;
use std::time::Instant;
use windlass_engine::EngineAnswer;
use windlass_kernel::ExecutionId;
use windlass_store::DefinitionId;

/// Delay of the timers: longer than any benchmark.
const NAP_MS: u64 = 30 * 24 * 3_600 * 1_000;
/// Maximum number of starts in flight.
const WINDOW: usize = 2_048;

pub fn backlog(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let rig = site.rig(Setup::default())?;
    let definition = rig.define("chain", nets::chain(chain::STEPS)?)?;
    let nap = rig.define("nap", nets::nap(NAP_MS)?)?;
    let before = chain::drive(site, &rig, definition)?;
    let alone = rate(before.executions.len() as u64, before.wall);
    let began = Instant::now();
    let waiting = wait_many(site, &rig, nap)?;
    let filled = rate(waiting.len() as u64, began.elapsed());
    let (result, driven) = chain::measure(site, &rig, definition, BenchResult::new("backlog", site))?;
    let loaded = rate(driven.executions.len() as u64, driven.wall);
    let result = result
        .figure("alone_steps_per_s", alone * f64::from(chain::STEPS))
        .figure("alone_p99_ms", before.latencies.percentile_ms(0.99))
        .figure("ratio", loaded / alone)
        .figure("waiting_started_per_s", filled)
        .condition("waiting", waiting.len());
    let steps = chain::STEPS.into();
    let expected = [
        Expected::completed(before.executions, steps),
        Expected::completed(driven.executions, steps),
        Expected::waiting(waiting),
    ];
    site.finish(rig, result, &expected)
}

/// Starts executions that only wait. Each start is answered after it is on disk.
fn wait_many(site: &Site<'_>, rig: &Rig, nap: DefinitionId) -> anyhow::Result<Vec<ExecutionId>> {
    site.progress.phase("creating executions that wait");
    let (answers, answered) = bounded(WINDOW);
    let handle = rig.handle();
    let ask = || {
        let answers = answers.clone();
        // The channel has room for every answer in flight, so the engine never blocks.
        handle.ask(start_of(nap), move |answer| drop(answers.send(answer)));
    };
    let count = site.bench.backlog;
    (0..count.min(WINDOW)).for_each(|_| ask());
    let mut waiting = Vec::with_capacity(count);
    while waiting.len() < count {
        match answered.recv()? {
            EngineAnswer::Started(id) => waiting.push(id),
            other => bail!("an execution was not started: {other:?}"),
        }
        if waiting.len() + WINDOW <= count {
            ask();
        }
        site.progress.show(|| format!("{} of {count}", waiting.len()));
    }
    Ok(waiting)
}
