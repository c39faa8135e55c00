//! One large execution at a time, repeated: the median of all rounds is the figure.

use super::figures::{ms, rate};
use super::load::{Load, Until};
use super::result::BenchResult;
use super::rig::Setup;
use super::verify::Expected;
use super::{Site, nets};
use std::time::{Duration, Instant};
use windlass_kernel::Net;

const WIDTH: u32 = 1_000;
const LENGTH: u32 = 5_000;
const TIMES: u32 = 10_000;

/// The net, and the number of its steps that are compared between beginning and end.
struct Large {
    name: &'static str,
    net: Net,
    steps: u32,
    compared: Option<usize>,
}

pub fn fanout(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    run(site, Large { name: "fanout", net: nets::fan(WIDTH)?, steps: WIDTH + 1, compared: None })
}

pub fn long(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    run(site, Large { name: "long", net: nets::chain(LENGTH)?, steps: LENGTH, compared: Some(500) })
}

pub fn looped(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    run(site, Large { name: "loop", net: nets::looped(TIMES)?, steps: TIMES, compared: Some(500) })
}

/// One round.
struct Round {
    wall: Duration,
    /// The last steps against the first ones.
    ratio: Option<f64>,
}

fn run(site: &Site<'_>, large: Large) -> anyhow::Result<BenchResult> {
    let rig = site.rig(Setup { keeps_moments: large.compared.is_some(), ..Setup::default() })?;
    let definition = rig.define(large.name, large.net)?;
    site.progress.phase(large.name);
    let steps = u64::from(large.steps);
    let load = Load { definition, concurrency: 1, until: Until::Count(1), steps };
    let (mut rounds, mut executions) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while rounds.is_empty() || began.elapsed().as_secs_f64() < site.bench.seconds {
        rig.notes().take_moments();
        let driven = load.drive(&rig, &site.progress)?;
        let moments = rig.notes().take_moments();
        let ended = Instant::now();
        let ratio = large.compared.map(|compared| last_to_first(&moments, ended, compared));
        rounds.push(Round { wall: driven.wall, ratio });
        executions.extend(driven.executions);
    }
    let result = with_figures(BenchResult::new(large.name, site), &rounds, steps, large.compared);
    site.finish(rig, result, &[Expected::completed(executions, steps)])
}

fn with_figures(result: BenchResult, rounds: &[Round], steps: u64, compared: Option<usize>) -> BenchResult {
    let walls: Vec<f64> = rounds.iter().map(|round| ms(round.wall)).collect();
    let wall = middle(&walls);
    let result = result
        .figure("wall_ms", wall)
        .figure("first_wall_ms", walls[0])
        .figure("max_wall_ms", walls.iter().copied().fold(0.0, f64::max))
        .figure("steps_per_s", rate(steps, Duration::from_secs_f64(wall / 1_000.0)))
        .count("executions", rounds.len())
        .count("steps", rounds.len() as u64 * steps)
        .condition("steps_per_execution", steps);
    let ratios: Vec<f64> = rounds.iter().filter_map(|round| round.ratio).collect();
    match compared {
        Some(compared) => {
            result.figure("last_to_first", middle(&ratios)).condition("steps_compared", compared)
        }
        None => result,
    }
}

/// Ratio of the duration of the last steps to that of the first. A step lasts from its order to the next one's.
fn last_to_first(moments: &[Instant], ended: Instant, compared: usize) -> f64 {
    let all: Vec<Instant> = moments.iter().copied().chain([ended]).collect();
    let steps = all.len() - 1;
    let took = |from: usize| all[from + compared].duration_since(all[from]).as_secs_f64();
    if steps < 2 * compared { f64::NAN } else { took(steps - compared) / took(0).max(1e-9) }
}

pub fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_are_compared_with_the_first() {
        let began = Instant::now();
        let at = |millis: u64| began + Duration::from_millis(millis);
        // Two steps of 1 ms, one of 5 ms, two of 3 ms.
        let moments = [at(0), at(1), at(2), at(7), at(10)];
        let ratio = last_to_first(&moments, at(13), 2);
        assert!((ratio - 3.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn the_middle_of_an_even_number_is_the_worse_of_two() {
        assert!((middle(&[4.0, 1.0, 3.0, 2.0]) - 3.0).abs() < 1e-9);
        assert!((middle(&[2.0, 9.0, 1.0]) - 2.0).abs() < 1e-9);
    }
}
