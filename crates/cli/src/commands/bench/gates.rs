//! One chain, alone and while many tokens of the same execution wait at a closed gate.

use super::figures::{Latencies, ms, rate};
use super::load::{Load, Until};
use super::result::BenchResult;
use super::rig::{Rig, Setup};
use super::rounds::middle;
use super::verify::Expected;
use super::{Site, nets};
use std::time::{Duration, Instant};
use windlass_kernel::ExecutionId;
use windlass_store::DefinitionId;

const WAITING: u32 = 10_000;
/// Steps of the chain in the same execution.
const STEPS: u32 = 1_000;

pub fn gates(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let rig = site.rig(Setup { keeps_moments: true, ..Setup::default() })?;
    let nets = [nets::chain_with_gate(0, STEPS)?, nets::chain_with_gate(WAITING, STEPS)?];
    let [alone, loaded] = nets;
    let (alone, loaded) = (rig.define("gates-alone", alone)?, rig.define("gates", loaded)?);
    site.progress.phase("gates");
    let (mut without, mut with) = (Rounds::default(), Rounds::default());
    let began = Instant::now();
    // Both run one after the other, so that they find the machine in the same state.
    while without.walls.is_empty() || began.elapsed().as_secs_f64() < site.bench.seconds {
        without.add(site, &rig, alone)?;
        with.add(site, &rig, loaded)?;
    }
    let result = BenchResult::new("gates", site)
        .figure("alone_steps_per_s", without.rate())
        .figure("steps_per_s", with.rate())
        .figure("alone_step_p50_ms", without.steps.percentile_ms(0.5))
        .figure("step_p50_ms", with.steps.percentile_ms(0.5))
        .figure("wall_ms", middle(&with.walls))
        .figure("wall_ratio", middle(&with.walls) / middle(&without.walls))
        .figure("ratio", with.steps.percentile_ms(0.5) / without.steps.percentile_ms(0.5))
        .condition("standing", WAITING)
        .condition("steps_per_execution", STEPS)
        .count("rounds", with.walls.len());
    let executions = without.executions.into_iter().chain(with.executions).collect();
    site.finish(rig, result, &[Expected::completed(executions, STEPS.into())])
}

#[derive(Default)]
struct Rounds {
    executions: Vec<ExecutionId>,
    /// Time from the order of the first step to that of the last, in milliseconds. The tokens wait by then, and the
    /// end, which discards them, is not included.
    walls: Vec<f64>,
    /// Time from the order of each step to that of the next.
    steps: Latencies,
}

impl Rounds {
    fn add(&mut self, site: &Site<'_>, rig: &Rig, definition: DefinitionId) -> anyhow::Result<()> {
        rig.notes().take_moments();
        let load = Load { definition, concurrency: 1, until: Until::Count(1), steps: STEPS.into() };
        self.executions.extend(load.drive(rig, &site.progress)?.executions);
        let moments = rig.notes().take_moments();
        let gaps = moments.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        gaps.clone().for_each(|gap| self.steps.push(gap));
        self.walls.push(ms(gaps.sum()));
        Ok(())
    }

    fn rate(&self) -> f64 {
        rate(u64::from(STEPS - 1), Duration::from_secs_f64(middle(&self.walls) / 1_000.0))
    }
}
