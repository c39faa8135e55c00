//! A server in a process of its own, and clients that start executions over HTTP.

use super::Site;
use super::figures::{Latencies, ms, rate};
use super::result::BenchResult;
use anyhow::{Context, bail, ensure};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Playbook with one step that a worker completes without any work.
pub const ONE_STEP: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: one-step}\n\
                        workflow:\n- {step: only, tool: {kind: noop, result: 1}}\n";
/// Playbook with one step that is a process, so that more steps wait than are completed.
const PROCESS: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: process}\n\
                       workflow:\n- {step: only, tool: {kind: shell, command: 'true'}}\n";
/// Starts per second that the server is sent and must keep up with.
const RATE: u32 = 3_000;
/// Steps of the other tenant, one after the other, alone and next to the queue.
pub const SINGLE: usize = 50;
/// Interval of polls for the end of all executions.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// Time after which unfinished executions are an error.
const PATIENCE: Duration = Duration::from_secs(300);

pub fn http(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let server = Server::start(site)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(measure(site, &server));
    // The rest of the queue is not measured.
    drop(server);
    result
}

async fn measure(site: &Site<'_>, server: &Server) -> anyhow::Result<BenchResult> {
    let owner = server.client(&server.token);
    let one_step = owner.upload(ONE_STEP).await?;
    let connections = usize::from(site.bench.concurrency);
    let until = || Until::After(Duration::from_secs_f64(site.bench.seconds));
    site.progress.phase("starting executions");
    let started = owner.starts(&one_step, connections, Some(RATE), until()).await?;
    let ended = owner.all_completed(started.count).await?;
    let took = ended.duration_since(started.began);
    site.progress.phase("starting as many as possible");
    let most = owner.starts(&one_step, connections, None, until()).await?;
    let all_ended = owner.all_completed(started.count + most.count).await?;
    let other = server.client(&owner.tenant("other").await?);
    let fair = fairness(site, &owner, &other).await?;
    Ok(BenchResult::new("http", site)
        .figure("starts_per_s", rate(started.count, started.took))
        .figure("executions_per_s", rate(started.count, took))
        .figure("p50_ms", started.latencies.percentile_ms(0.5))
        .figure("p99_ms", started.latencies.percentile_ms(0.99))
        .figure("wall_ms", ms(took))
        .figure("most_starts_per_s", rate(most.count, most.took))
        .figure("most_executions_per_s", rate(most.count, all_ended.duration_since(most.began)))
        .figure("most_p50_ms", most.latencies.percentile_ms(0.5))
        .figure("single_p50_ms", fair.alone.percentile_ms(0.5))
        .figure("single_max_ms", fair.alone.percentile_ms(1.0))
        .figure("beside_queue_p50_ms", fair.loaded.percentile_ms(0.5))
        .figure("beside_queue_max_ms", fair.loaded.percentile_ms(1.0))
        .figure("delay_p50_ms", fair.loaded.percentile_ms(0.5) - fair.alone.percentile_ms(0.5))
        .condition("connections", site.bench.concurrency)
        .condition("seconds", site.bench.seconds)
        .condition("asked_starts_per_s", RATE)
        .count("executions", started.count)
        .count("most_executions", most.count)
        .count("queued_before", fair.queued.0)
        .count("queued_after", fair.queued.1))
}

struct Fairness {
    /// Single steps of one tenant, each started and awaited, without other load.
    alone: Latencies,
    /// Single steps while another tenant's steps wait.
    loaded: Latencies,
    queued: (u64, u64),
}

async fn fairness(site: &Site<'_>, owner: &Api, other: &Api) -> anyhow::Result<Fairness> {
    let (process, single) = (owner.upload(PROCESS).await?, other.upload(ONE_STEP).await?);
    site.progress.phase("single steps");
    let alone = other.singles(&single).await?;
    site.progress.phase("filling the queue");
    let until = Until::Queued(site.bench.queued as u64);
    owner.starts(&process, site.bench.concurrency.into(), None, until).await?;
    let before = owner.measured("windlass_queue_depth").await?;
    site.progress.phase("single steps next to the queue");
    let loaded = other.singles(&single).await?;
    let after = owner.measured("windlass_queue_depth").await?;
    Ok(Fairness { alone, loaded, queued: (before, after) })
}

/// The server; killed when it is dropped.
pub struct Server {
    child: Child,
    url: String,
    pub token: String,
}

impl Server {
    pub fn start(site: &Site<'_>) -> anyhow::Result<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--open-executions", "0", "--data"])
            .arg(site.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("the program cannot start itself")?;
        let mut words = BufReader::new(child.stderr.take().context("a pipe")?);
        let url = loop {
            let mut line = String::new();
            ensure!(words.read_line(&mut line)? > 0, "the server ended before it listened");
            if let Some((_, url)) = line.trim().split_once("listening on ") {
                break url.to_owned();
            }
        };
        // Later output is read and dropped, so that the server never blocks on it.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
        let token = std::fs::read_to_string(site.folder.join("owner.token"))?.trim().to_owned();
        Ok(Server { child, url, token })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn client(&self, token: &str) -> Api {
        Api { client: Client::new(), url: self.url.clone(), token: token.to_owned(), group: None }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the server with one token.
#[derive(Debug, Clone)]
pub struct Api {
    client: Client,
    url: String,
    token: String,
    /// Group of workers for the steps of the executions that it starts; None: the server itself.
    group: Option<&'static str>,
}

pub enum Until {
    After(Duration),
    /// Waits until this number of steps wait for a slot.
    Queued(u64),
}

pub struct Started {
    pub began: Instant,
    took: Duration,
    pub count: u64,
    /// Latency from the request to its answer.
    latencies: Latencies,
}

impl Api {
    /// Returns the same client, whose executions run in a group of workers.
    pub fn with_group(self, group: &'static str) -> Api {
        Api { group: Some(group), ..self }
    }

    /// Returns the body of a start. With `waits`, the answer comes after the end of the execution.
    fn start_body(&self, waits: bool) -> String {
        let mut options = json!({ "async": !waits });
        if let Some(group) = self.group {
            options["runner"] = json!({ "group": group });
        }
        json!({ "inputs": {}, "options": options }).to_string()
    }

    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> anyhow::Result<(u16, String)> {
        let request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        let request = match body {
            Some(body) if body.starts_with('{') => {
                request.header("content-type", "application/json").body(body)
            }
            Some(body) => request.header("content-type", "application/yaml").body(body),
            None => request,
        };
        let response = request.send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    async fn json(&self, path: &str, body: String, expected: u16) -> anyhow::Result<Value> {
        let (status, text) = self.ask(Method::POST, path, Some(body)).await?;
        ensure!(status == expected, "POST {path} was answered {status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    pub async fn upload(&self, definition: &str) -> anyhow::Result<String> {
        let answer = self.json("/api/v1/workflows", definition.to_owned(), 201).await?;
        Ok(answer["id"].as_str().context("an id")?.to_owned())
    }

    /// Creates a tenant and returns its token.
    async fn tenant(&self, name: &str) -> anyhow::Result<String> {
        let tenant = self.json("/api/v1/tenants", json!({ "name": name }).to_string(), 201).await?;
        let wanted = json!({ "name": "bench", "role": "owner", "tenantId": tenant["id"] });
        let token = self.json("/api/v1/tokens", wanted.to_string(), 201).await?;
        Ok(token["token"].as_str().context("a token")?.to_owned())
    }

    /// `per_second` is the rate of all connections together, evenly spaced; without it each sends a request as soon as
    /// the last one is answered.
    pub async fn starts(
        &self,
        workflow: &str,
        connections: usize,
        per_second: Option<u32>,
        until: Until,
    ) -> anyhow::Result<Started> {
        let began = Instant::now();
        let stop = Arc::new(AtomicU64::new(0));
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let clients: Vec<_> = (0..connections)
            .map(|number| {
                let turns = per_second.map(|rate| Turns { began, rate, number, of: connections, taken: 0 });
                tokio::spawn(start_until(self.clone(), path.clone(), turns, stop.clone()))
            })
            .collect();
        match until {
            Until::After(seconds) => tokio::time::sleep(seconds).await,
            Until::Queued(count) => self.wait_for("windlass_queue_depth", count).await.map(drop)?,
        }
        stop.store(1, Ordering::Relaxed);
        let mut latencies = Latencies::default();
        let mut count = 0;
        for client in clients {
            for took in client.await?? {
                latencies.push(took);
                count += 1;
            }
        }
        Ok(Started { began, took: began.elapsed(), count, latencies })
    }

    /// Returns the time at which the last of this number of executions completed.
    pub async fn all_completed(&self, count: u64) -> anyhow::Result<Instant> {
        self.wait_for("windlass_executions_ended_total{status=\"completed\"}", count).await
    }

    pub async fn wait_for(&self, name: &str, at_least: u64) -> anyhow::Result<Instant> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.measured(name).await? >= at_least {
                return Ok(Instant::now());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
        bail!("{name} did not reach {at_least} within {PATIENCE:?}")
    }

    pub async fn measured(&self, name: &str) -> anyhow::Result<u64> {
        let (_, text) = self.ask(Method::GET, "/metrics", None).await?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.unwrap_or("0").parse::<f64>()? as u64)
    }

    pub async fn singles(&self, workflow: &str) -> anyhow::Result<Latencies> {
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let mut latencies = Latencies::default();
        for _ in 0..SINGLE {
            let began = Instant::now();
            let answer = self.json(&path, self.start_body(true), 200).await?;
            latencies.push(began.elapsed());
            ensure!(answer["status"] == "completed", "a single step ended {}", answer["status"]);
        }
        Ok(latencies)
    }
}

/// Times at which one of several connections sends its requests.
struct Turns {
    began: Instant,
    rate: u32,
    number: usize,
    of: usize,
    taken: usize,
}

impl Turns {
    /// A late turn is taken at once, so that no request is left out.
    async fn next(&mut self) {
        let place = (self.taken * self.of + self.number) as f64;
        self.taken += 1;
        tokio::time::sleep_until((self.began + Duration::from_secs_f64(place / f64::from(self.rate))).into())
            .await;
    }
}

/// One connection: one request after the other.
async fn start_until(
    api: Api,
    path: String,
    mut turns: Option<Turns>,
    stop: Arc<AtomicU64>,
) -> anyhow::Result<Vec<Duration>> {
    let (mut took, body) = (Vec::new(), api.start_body(false));
    while stop.load(Ordering::Relaxed) == 0 {
        if let Some(turns) = &mut turns {
            turns.next().await;
        }
        let began = Instant::now();
        let (status, text) = api.ask(Method::POST, &path, Some(body.clone())).await?;
        took.push(began.elapsed());
        ensure!(status == 202, "a start was answered {status}: {text}");
    }
    Ok(took)
}
