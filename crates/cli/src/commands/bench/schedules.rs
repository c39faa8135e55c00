//! A server with many schedules: their cost while none is due, and the start times of those that are due in one second.

use super::figures::{Latencies, ms};
use super::http::{Api, ONE_STEP, Server};
use super::result::BenchResult;
use super::{Site, machine};
use anyhow::{Context, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Schedules that are due in the same second, unless there are fewer.
const DUE: usize = 1_000;
/// Time until the creation no longer affects the process.
const REST: Duration = Duration::from_secs(2);
/// Time after which missing runs are an error.
const PATIENCE: Duration = Duration::from_secs(120);
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Runs of one page.
const PAGE: usize = 200;

pub fn schedules(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let server = Server::start(site)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(site, &server))
}

async fn measure(site: &Site<'_>, server: &Server) -> anyhow::Result<BenchResult> {
    let (owner, count) = (server.client(&server.token), usize::try_from(site.bench.schedules)?);
    let workflow = owner.upload(ONE_STEP).await?;
    site.progress.phase("creating schedules");
    let began = Instant::now();
    let ids = create(site, &owner, &workflow, count).await?;
    let creation = began.elapsed();
    site.progress.phase("idle");
    tokio::time::sleep(REST).await;
    let idle = measure_idle(server, Duration::from_secs_f64(site.bench.seconds)).await?;
    site.progress.phase("due in one second");
    let due = &ids[..DUE.min(ids.len())];
    // Changes take about as long as creations; the second must be after the last of them.
    let share = creation.mul_f64(due.len() as f64 / count as f64);
    let at = whole_second(Timestamp::now() + SignedDuration::try_from(share * 2 + Duration::from_secs(5))?);
    change_all(site, &owner, due, at).await?;
    ensure!(Timestamp::now() < at, "the schedules were not changed in time");
    let runs = await_runs(&owner, due.len()).await?;
    let lags = lags(&runs, at)?;
    let verified = check(&runs, due)?;
    Ok(BenchResult::new("schedules", site)
        .figure("idle_cpu_percent", idle * 100.0)
        .figure("start_p50_ms", lags.percentile_ms(0.5))
        .figure("start_p99_ms", lags.percentile_ms(0.99))
        .figure("all_started_ms", lags.percentile_ms(1.0))
        .figure("create_ms_each", ms(creation) / count as f64)
        .condition("schedules", count)
        .condition("due", due.len())
        .condition("seconds", site.bench.seconds)
        .counted_runs(verified))
}

/// Schedules that are not due within the time of a benchmark.
async fn create(site: &Site<'_>, owner: &Api, workflow: &str, count: usize) -> anyhow::Result<Vec<String>> {
    let requests = (0..count).map(|number| {
        let document = json!({
            "name": format!("bench {number}"),
            "schedule": { "kind": "once", "at": "2999-01-01T00:00:00Z" },
            "target": { "kind": "workflow", "workflow_id": workflow },
        });
        (Method::POST, "/api/v1/schedules".to_owned(), document.to_string())
    });
    let answers = send_all(site, owner, requests.collect(), 201).await?;
    answers.iter().map(|made| Ok(made["id"].as_str().context("an id")?.to_owned())).collect()
}

async fn change_all(site: &Site<'_>, owner: &Api, ids: &[String], at: Timestamp) -> anyhow::Result<()> {
    let change = json!({ "schedule": { "at": at.to_string() } }).to_string();
    let requests = ids.iter().map(|id| (Method::PATCH, format!("/api/v1/schedules/{id}"), change.clone()));
    send_all(site, owner, requests.collect(), 200).await.map(drop)
}

async fn send_all(
    site: &Site<'_>,
    owner: &Api,
    requests: Vec<(Method, String, String)>,
    expected: u16,
) -> anyhow::Result<Vec<Value>> {
    let places = Arc::new(Semaphore::new(site.bench.concurrency.into()));
    let sent: Vec<_> = requests
        .into_iter()
        .map(|(method, path, body)| {
            let (owner, places) = (owner.clone(), places.clone());
            tokio::spawn(async move {
                let _place = places.acquire().await?;
                let (status, text) = owner.ask(method, &path, Some(body)).await?;
                ensure!(status == expected, "{path} was answered {status}: {text}");
                anyhow::Ok(serde_json::from_str(&text)?)
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(sent.len());
    for answer in sent {
        answers.push(answer.await??);
    }
    Ok(answers)
}

/// Returns the share of one core that the server uses.
async fn measure_idle(server: &Server, time: Duration) -> anyhow::Result<f64> {
    let (before, began) = (machine::cpu_time(server.process())?, Instant::now());
    tokio::time::sleep(time).await;
    let used = machine::cpu_time(server.process())?.saturating_sub(before);
    Ok(used.as_secs_f64() / began.elapsed().as_secs_f64())
}

fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Waits until the given number of runs have ended, and returns all runs.
async fn await_runs(owner: &Api, count: usize) -> anyhow::Result<Vec<Value>> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        tokio::time::sleep(ASK_EVERY).await;
        if owner.measured("windlass_schedule_runs_total{outcome=\"succeeded\"}").await? >= count as u64 {
            return read_runs(owner).await;
        }
    }
    bail!("{count} runs did not end within {PATIENCE:?}")
}

async fn read_runs(owner: &Api) -> anyhow::Result<Vec<Value>> {
    let (mut runs, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/runs?limit={PAGE}{cursor}");
        let (status, text) = owner.ask(Method::GET, &path, None).await?;
        ensure!(status == 200, "{path} was answered {status}: {text}");
        let page: Value = serde_json::from_str(&text)?;
        runs.extend(page["items"].as_array().into_iter().flatten().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(runs),
        }
    }
}

/// Returns the time from the second in which the schedules are due to the start of each run.
fn lags(runs: &[Value], at: Timestamp) -> anyhow::Result<Latencies> {
    let mut lags = Latencies::default();
    for run in runs {
        let started: Timestamp = run["started_at"].as_str().context("a run without a start")?.parse()?;
        lags.push(Duration::try_from(started.duration_since(at)).context("a run began too early")?);
    }
    Ok(lags)
}

/// Checks that every schedule that was due has one run, which succeeded at its first attempt.
fn check(runs: &[Value], due: &[String]) -> anyhow::Result<usize> {
    let mut by_schedule = BTreeMap::<&str, usize>::new();
    for run in runs {
        ensure!(run["status"] == "succeeded" && run["attempt"] == 1, "a run is {run}");
        *by_schedule.entry(run["schedule_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let is_once = due.iter().all(|id| by_schedule.get(id.as_str()) == Some(&1));
    ensure!(is_once && by_schedule.len() == due.len(), "not every schedule has exactly one run");
    Ok(runs.len())
}
