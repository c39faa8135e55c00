//! Short executions: many at a time, or one after the other.

use super::figures::{ms, rate};
use super::load::{Driven, Load, Until};
use super::result::BenchResult;
use super::rig::{Rig, Setup};
use super::verify::Expected;
use super::{Site, nets};
use serde_json::{Value, json};
use windlass_store::DefinitionId;

/// Steps of one execution.
pub const STEPS: u32 = 10;
/// Executions at a time while the store is being filled.
const FILLING: usize = 512;
/// Bytes of one output in `payload`.
const PAYLOAD: usize = 4 * 1_024;

pub fn chain(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let rig = site.rig(Setup::default())?;
    let definition = rig.define("chain", nets::chain(STEPS)?)?;
    let (result, driven) = measure(site, &rig, definition, BenchResult::new("chain", site))?;
    let mut expected = vec![Expected::completed(driven.executions.clone(), STEPS.into())];
    let result = match site.bench.stored {
        Some(stored) => after_storing(site, &rig, definition, stored, result, (&driven, &mut expected))?,
        None => result,
    };
    site.finish(rig, result, &expected)
}

pub fn payload(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let output = json!({ "ok": true, "text": text_of(PAYLOAD) });
    let rig = site.rig(Setup { output, ..Setup::default() })?;
    let definition = rig.define("payload", nets::chain(STEPS)?)?;
    let result = BenchResult::new("payload", site).condition("output_bytes", PAYLOAD);
    let (result, driven) = measure(site, &rig, definition, result)?;
    site.finish(rig, result, &[Expected::completed(driven.executions, STEPS.into())])
}

pub fn single(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let rig = site.rig(Setup::default())?;
    let definition = rig.define("single", nets::chain(1)?)?;
    let until = Until::Seconds(site.bench.seconds);
    site.progress.phase("single");
    let driven = Load { definition, concurrency: 1, until, steps: 1 }.drive(&rig, &site.progress)?;
    let result = with_figures(BenchResult::new("single", site), &driven, 1, &rig);
    let result = result.condition("seconds", site.bench.seconds).condition("concurrency", 1);
    site.finish(rig, result, &[Expected::completed(driven.executions, 1)])
}

/// Builds the chains that the command line requests.
pub fn measure(
    site: &Site<'_>,
    rig: &Rig,
    definition: DefinitionId,
    result: BenchResult,
) -> anyhow::Result<(BenchResult, Driven)> {
    let (seconds, concurrency) = (site.bench.seconds, usize::from(site.bench.concurrency));
    let driven = drive(site, rig, definition)?;
    let result = with_figures(result, &driven, STEPS, rig);
    let result = result.condition("seconds", seconds).condition("concurrency", concurrency);
    Ok((result.condition("steps_per_execution", STEPS), driven))
}

pub fn drive(site: &Site<'_>, rig: &Rig, definition: DefinitionId) -> anyhow::Result<Driven> {
    let until = Until::Seconds(site.bench.seconds);
    let concurrency = site.bench.concurrency.into();
    site.progress.phase("measuring");
    rig.notes().take_latencies();
    rig.tally().take_latencies();
    Load { definition, concurrency, until, steps: STEPS.into() }.drive(rig, &site.progress)
}

fn with_figures(result: BenchResult, driven: &Driven, steps: u32, rig: &Rig) -> BenchResult {
    let executions = driven.executions.len() as u64;
    let (step, sync) = (rig.notes().take_latencies(), rig.tally().take_latencies());
    result
        .figure("steps_per_s", rate(executions * u64::from(steps), driven.wall))
        .figure("executions_per_s", rate(executions, driven.wall))
        .figure("p50_ms", driven.latencies.percentile_ms(0.5))
        .figure("p99_ms", driven.latencies.percentile_ms(0.99))
        .figure("max_ms", driven.latencies.percentile_ms(1.0))
        .figure("step_p50_ms", step.percentile_ms(0.5))
        .figure("step_p99_ms", step.percentile_ms(0.99))
        .figure("sync_p50_ms", sync.percentile_ms(0.5))
        .figure("sync_p99_ms", sync.percentile_ms(0.99))
        .figure("sync_max_ms", sync.percentile_ms(1.0))
        .figure("wall_ms", ms(driven.wall))
        .count("executions", executions)
        .count("steps", executions * u64::from(steps))
}

/// Repeats the benchmark in a store with more executions.
fn after_storing(
    site: &Site<'_>,
    rig: &Rig,
    definition: DefinitionId,
    stored: usize,
    result: BenchResult,
    (before, expected): (&Driven, &mut Vec<Expected>),
) -> anyhow::Result<BenchResult> {
    site.progress.phase("storing");
    let missing = Until::Count(stored.saturating_sub(before.executions.len()));
    let filling = Load { definition, concurrency: FILLING, until: missing, steps: STEPS.into() };
    let filled = filling.drive(rig, &site.progress)?;
    let after = drive(site, rig, definition)?;
    let rates = [before, &after].map(|driven| rate(driven.executions.len() as u64, driven.wall));
    let held = before.executions.len() + filled.executions.len();
    expected.push(Expected::completed(filled.executions, STEPS.into()));
    expected.push(Expected::completed(after.executions, STEPS.into()));
    Ok(result
        .condition("stored", held)
        .figure("stored_steps_per_s", rates[1] * f64::from(STEPS))
        .figure("stored_p99_ms", after.latencies.percentile_ms(0.99))
        .figure("stored_ratio", rates[1] / rates[0]))
}

/// Returns a text without early repetition, the same in every run.
fn text_of(bytes: usize) -> Value {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    let letter = |_| {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        char::from(b'a' + u8::try_from((bits >> 33) % 26).unwrap_or(0))
    };
    Value::String((0..bytes).map(letter).collect())
}
