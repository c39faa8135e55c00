//! The upper limit: the same bytes to a plain file, and the same rows through the store alone. The figures of the
//! engine are compared with these.

use super::commits::Chains;
use super::figures::{Latencies, rate};
use super::result::BenchResult;
use super::rig::now;
use super::verify::{self, Expected};
use super::{Site, chain, nets};
use anyhow::{Context, ensure};
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::Folder;
use windlass_kernel::{ExecutionId, Net};
use windlass_store::sqlite::Sqlite;
use windlass_store::{
    Applied, Commit, Definition, Store, StoredManifest, Target, Tenant, WorkflowId, Write, seal,
};

/// Commits in one batch: the maximum of `chain`, and one, as in `single`.
const BATCHES: [(usize, &str); 2] = [(64, ""), (1, "one_")];
/// Share of each part in the requested time.
const SHARE: f64 = 0.25;

/// Result of one part.
#[derive(Debug, Default)]
struct Reached {
    steps: u64,
    bytes: u64,
    took: Duration,
    batches: Latencies,
}

pub fn limit(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let net = Arc::new(nets::chain(chain::STEPS)?);
    let mut store = Sqlite::open(&Folder::store(site.folder))?;
    define(&mut store, &net)?;
    let mut result = BenchResult::new("limit", site).condition("seconds", site.bench.seconds);
    let (mut next, mut executions) = (1, Vec::new());
    for (size, prefix) in BATCHES {
        site.progress.phase("bytes to a file");
        let file = to_file(site, &net, size)?;
        site.progress.phase("rows to the store");
        let stored = to_store(site, &net, size, &mut store, &mut next)?;
        result = with_figures(result, &format!("{prefix}file"), &file);
        result = with_figures(result, &format!("{prefix}store"), &stored);
    }
    executions.extend((1..next).map(ExecutionId));
    drop(store);
    let result = result.condition("commits_per_sync", BATCHES[0].0);
    if !site.bench.verifies() {
        return Ok(result);
    }
    site.progress.phase("verifying");
    let expected = Expected::completed(executions, chain::STEPS.into());
    let verified = verify::verify(site.folder, &[expected], &site.progress)?;
    Ok(result.verified(&verified))
}

fn with_figures(result: BenchResult, what: &str, reached: &Reached) -> BenchResult {
    result
        .figure(&format!("{what}_steps_per_s"), rate(reached.steps, reached.took))
        .figure(&format!("{what}_bytes_per_step"), reached.bytes as f64 / reached.steps.max(1) as f64)
        .figure(&format!("{what}_p50_ms"), reached.batches.percentile_ms(0.5))
        .figure(&format!("{what}_p99_ms"), reached.batches.percentile_ms(0.99))
}

fn define(store: &mut Sqlite, net: &Arc<Net>) -> anyhow::Result<()> {
    let definition = Definition {
        tenant: Tenant::default(),
        target: Target::Named(WorkflowId(1)),
        name: "bench/limit".into(),
        dialect: "bench".into(),
        source: "limit".into(),
        workload: serde_json::json!({}),
        manifest: StoredManifest::default(),
        net: net.clone(),
        hooks: Vec::new(),
        schedules: Vec::new(),
        at: now(),
        status: None,
        author: None,
    };
    store.write(&[Write::Define(Box::new(definition))])?;
    Ok(())
}

/// Journal and rows of each commit, appended and synced once per batch.
fn to_file(site: &Site<'_>, net: &Arc<Net>, size: usize) -> anyhow::Result<Reached> {
    let path = site.folder.join("plain");
    let mut file = File::create(&path).context("cannot make a plain file")?;
    let mut reached = Reached::default();
    let mut next = 1;
    while reached.took.as_secs_f64() < site.bench.seconds * SHARE {
        each_batch(net, size, &mut next, |batch| {
            let bytes: Vec<u8> = batch.iter().flat_map(bytes_of).collect();
            let began = Instant::now();
            file.write_all(&bytes)?;
            file.sync_data()?;
            reached.add(began.elapsed(), batch, bytes.len());
            Ok(())
        })?;
    }
    std::fs::remove_file(&path)?;
    Ok(reached)
}

fn to_store(
    site: &Site<'_>,
    net: &Arc<Net>,
    size: usize,
    store: &mut Sqlite,
    next: &mut u128,
) -> anyhow::Result<Reached> {
    let mut reached = Reached::default();
    while reached.took.as_secs_f64() < site.bench.seconds * SHARE {
        each_batch(net, size, next, |batch| {
            let bytes: usize = batch.iter().map(|write| bytes_of(write).len()).sum();
            let began = Instant::now();
            let applied = store.write(batch)?;
            reached.add(began.elapsed(), batch, bytes);
            let all = applied.iter().all(|applied| matches!(applied, Applied::Committed(_)));
            ensure!(all, "the store refused a commit: {applied:?}");
            Ok(())
        })?;
    }
    Ok(reached)
}

/// Chains from their start to their end. The time of building them is not measured.
fn each_batch(
    net: &Arc<Net>,
    size: usize,
    next: &mut u128,
    mut take: impl FnMut(&[Write]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut chains = Chains::new(net.clone(), *next, size, now());
    *next += size as u128;
    while let Some(batch) = chains.batch()? {
        take(&batch)?;
    }
    Ok(())
}

impl Reached {
    /// The commit that creates an execution is not the end of a step.
    fn add(&mut self, took: Duration, batch: &[Write], bytes: usize) {
        let ends = |write: &&Write| matches!(write, Write::Commit(commit) if !commit.answered.is_empty());
        self.took += took;
        self.batches.push(took);
        self.bytes += bytes as u64;
        self.steps += batch.iter().filter(ends).count() as u64;
    }
}

fn bytes_of(write: &Write) -> Vec<u8> {
    let Write::Commit(commit) = write else { return Vec::new() };
    let Commit { execution, expected, id, records, rows, .. } = &**commit;
    let mut bytes = seal(*execution, *expected, *id, records).bytes;
    bytes.extend(&rows.head.state);
    rows.runs.iter().filter_map(|run| run.after.as_ref()).for_each(|run| bytes.extend(&run.state));
    rows.parts.iter().filter_map(|part| part.value.as_ref()).for_each(|value| bytes.extend(value));
    bytes
}
