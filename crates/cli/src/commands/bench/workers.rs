//! Steps that a worker process does for a server, both on this machine, over HTTP.

use super::Site;
use super::figures::{ms, rate};
use super::http::{ONE_STEP, SINGLE, Server, Until};
use super::result::BenchResult;
use anyhow::Context as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GROUP: &str = "bench";
const STEPS: u64 = 10;
/// Share of the time in which chains are started; the rest of them is done afterwards.
const STARTING: f64 = 0.25;

pub fn workers(site: &Site<'_>) -> anyhow::Result<BenchResult> {
    let server = Server::start(site)?;
    let _worker = WorkerProcess::start(site, &server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(site, &server))
}

async fn measure(site: &Site<'_>, server: &Server) -> anyhow::Result<BenchResult> {
    let owner = server.client(&server.token).with_group(GROUP);
    let (chain, one_step) = (owner.upload(&chain()).await?, owner.upload(ONE_STEP).await?);
    site.progress.phase("single steps");
    // The first one waits until the worker has registered.
    owner.singles(&one_step).await?;
    let alone = owner.singles(&one_step).await?;
    site.progress.phase("chains");
    let until = Until::After(Duration::from_secs_f64(site.bench.seconds * STARTING));
    let started = owner.starts(&chain, site.bench.concurrency.into(), None, until).await?;
    let ended = owner.all_completed(2 * SINGLE as u64 + started.count).await?;
    let took = ended.duration_since(started.began);
    Ok(BenchResult::new("workers", site)
        .figure("steps_per_s", rate(started.count * STEPS, took))
        .figure("executions_per_s", rate(started.count, took))
        .figure("p50_ms", alone.percentile_ms(0.5))
        .figure("p99_ms", alone.percentile_ms(0.99))
        .figure("wall_ms", ms(took))
        .condition("connections", site.bench.concurrency)
        .condition("steps_of_a_chain", STEPS)
        .count("executions", started.count)
        .count("single_steps", SINGLE as u64))
}

/// Steps one after another, each of which is one call of a worker without any work.
fn chain() -> String {
    let step = |number| {
        let next = if number < STEPS { format!(", next: s{}", number + 1) } else { String::new() };
        format!("- {{step: s{number}, tool: {{kind: noop, result: {number}}}{next}}}\n")
    };
    let steps: String = (1..=STEPS).map(step).collect();
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: chain}}\nworkflow:\n{steps}")
}

/// The worker; killed when it is dropped.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(site: &Site<'_>, server: &Server) -> anyhow::Result<WorkerProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["worker", "--server", server.url(), "--group", GROUP, "--slots"]);
        command.arg(site.bench.concurrency.to_string());
        command.arg("--data").arg(site.folder.join("worker")).env("WINDLASS_TOKEN", &server.token);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(WorkerProcess(command.spawn().context("cannot start a worker process")?))
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
