//! Metrics for Prometheus.

use crate::app::App;
use crate::host::now;
use crate::problem::Problem;
use anyhow::anyhow;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use windlass_engine::{EngineAnswer, Folder, GroupLoad, Load, Request as Ask, Tally};
use windlass_store::{Objects as _, Outbox as _, ScheduleLoad, Schedules as _};

/// Buckets of histograms, from a sync on a fast disk to a delay that users notice.
const SECONDS: [f64; 12] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Time between two upkeeps, without which histograms grow.
const UPKEEP: Duration = Duration::from_secs(5);

/// Maximum of the webhook backlog; more events are not counted.
const BACKLOG_MAX: usize = 100_000;

/// The recorder, of which a process has one.
static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder.
pub(crate) fn start() -> anyhow::Result<()> {
    if HANDLE.get().is_some() {
        return Ok(());
    }
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .map_err(|error| anyhow!("the buckets of histograms are not valid: {error}"))?;
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    // Another server of this process may have installed its recorder first.
    if HANDLE.set(handle).is_ok() {
        metrics::set_global_recorder(recorder).map_err(|error| anyhow!("{error}"))?;
        describe();
    }
    Ok(())
}

/// Runs the upkeep of histograms until the server is stopped.
pub(crate) async fn upkeep(app: Arc<App>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP) => {}
            () = app.stopped() => return,
        }
        if let Some(handle) = HANDLE.get() {
            handle.run_upkeep();
        }
    }
}

/// Returns the metrics in the text format of Prometheus.
pub(crate) async fn render(app: &App) -> Result<String, Problem> {
    if let EngineAnswer::Load(load) = app.ask(Ask::Load).await? {
        record_load(&load);
    }
    let loads = app.remote.loads(None).await?;
    let sum = |count: fn(&GroupLoad) -> usize| loads.iter().map(count).sum::<usize>() as f64;
    gauge!("windlass_group_waiting").set(sum(|load| load.waiting));
    gauge!("windlass_group_claimed").set(sum(|load| load.claimed));
    gauge!("windlass_group_workers").set(sum(|load| load.workers));
    let backlog = app.readers.look(|reader| reader.backlog(BACKLOG_MAX)).await?;
    gauge!("windlass_webhook_backlog").set(backlog as f64);
    record_schedules(app).await?;
    if app.bucket.is_some() {
        let load = app.readers.look(|reader| reader.object_load(BACKLOG_MAX)).await?;
        gauge!("windlass_artifacts_waiting").set(load.waiting as f64);
        gauge!("windlass_artifacts_failed").set(load.failed as f64);
    }
    gauge!("windlass_store_log_bytes").set(log_bytes(app) as f64);
    if let Some(free) = app.storage.free() {
        gauge!("windlass_disk_free_bytes").set(free as f64);
    }
    gauge!("windlass_disk_full").set(f64::from(u8::from(app.storage.is_disk_full())));
    Ok(HANDLE.get().map(PrometheusHandle::render).unwrap_or_default())
}

async fn record_schedules(app: &App) -> Result<(), Problem> {
    let load = app.readers.look(|reader| reader.schedule_load(now())).await?;
    let ScheduleLoad { schedules, enabled, due, waiting, active, dead_letters } = load;
    for (name, count) in [
        ("windlass_schedules", schedules),
        ("windlass_schedules_enabled", enabled),
        ("windlass_schedule_runs_due", due),
        ("windlass_schedule_runs_waiting", waiting),
        ("windlass_schedule_runs_active", active),
        ("windlass_dead_letters", dead_letters),
    ] {
        gauge!(name).set(count as f64);
    }
    Ok(())
}

fn log_bytes(app: &App) -> u64 {
    let mut log = Folder::store(&app.settings.data).into_os_string();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |file| file.len())
}

/// Returns the label of a method. A client may send any word as a method, and every label takes memory for the life of the
/// process, so unknown methods share one label.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Records the duration of a request by its route. Paths are unbounded and therefore no labels.
pub(crate) async fn record_request(matched: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let (began, method) = (Instant::now(), method_label(request.method()));
    let response = next.run(request).await;
    let route = matched.map_or_else(|| "none".to_owned(), |matched| matched.as_str().to_owned());
    let (status, took_ms) = (response.status(), began.elapsed().as_millis());
    if status.is_server_error() {
        tracing::warn!(method, route, status = status.as_u16(), took_ms, "request failed");
    } else {
        tracing::debug!(method, route, status = status.as_u16(), took_ms, "request");
    }
    let status = status.as_u16().to_string();
    histogram!("windlass_http_request_seconds", "route" => route, "method" => method, "status" => status)
        .record(began.elapsed());
    response
}

fn record_load(load: &Load) {
    let Load { queued, in_flight, slots, live, quarantined, recovered, lost, tally } = *load;
    for (name, count) in [
        ("windlass_queue_depth", queued),
        ("windlass_steps_in_flight", in_flight),
        ("windlass_slots", slots),
        ("windlass_executions_in_memory", live),
        ("windlass_quarantined_executions", quarantined),
        ("windlass_recovered", usize::from(recovered)),
    ] {
        gauge!(name).set(count as f64);
    }
    let Tally { started, completed, partial, failed, cancelled, steps_done, steps_failed, retries } = tally;
    counter!("windlass_executions_started_total").absolute(started);
    for (status, count) in
        [("completed", completed), ("partial_success", partial), ("failed", failed), ("cancelled", cancelled)]
    {
        counter!("windlass_executions_ended_total", "status" => status).absolute(count);
    }
    for (status, count) in [("completed", steps_done), ("failed", steps_failed)] {
        counter!("windlass_steps_total", "status" => status).absolute(count);
    }
    counter!("windlass_step_retries_total").absolute(retries);
    counter!("windlass_lease_losses_total").absolute(lost);
}

fn describe() {
    describe_histogram!("windlass_commit_seconds", "Duration of a batch of commits");
    describe_histogram!(
        "windlass_schedule_start_lag_seconds",
        "Time from the due time of a schedule's run to its start"
    );
    describe_gauge!("windlass_schedules", "Schedules");
    describe_gauge!("windlass_schedules_enabled", "Schedules that are enabled");
    describe_gauge!("windlass_schedule_runs_due", "Runs of schedules that are due and wait");
    describe_gauge!(
        "windlass_schedule_runs_waiting",
        "Runs of schedules that wait for their time, such as retries"
    );
    describe_gauge!("windlass_schedule_runs_active", "Runs of schedules that are claimed or running");
    describe_gauge!("windlass_dead_letters", "Dead letters that are not resolved");
    describe_counter!("windlass_schedule_runs_total", "Runs of schedules that ended, by outcome");
    describe_counter!(
        "windlass_schedule_occurrences_missed_total",
        "Occurrences of schedules that were skipped because they were late"
    );
    describe_histogram!("windlass_http_request_seconds", "Duration of requests, by route");
    describe_counter!("windlass_artifact_uploads_total", "Attempts to upload an artifact, by result");
    describe_gauge!("windlass_artifacts_waiting", "Artifacts that are to be copied into the bucket");
    describe_gauge!("windlass_artifacts_failed", "Artifacts whose upload failed in all attempts");
    describe_gauge!("windlass_queue_depth", "Steps that wait for a free slot");
    describe_gauge!("windlass_steps_in_flight", "Steps that workers run");
    describe_gauge!("windlass_group_waiting", "Calls that wait for a worker of their group, over all groups");
    describe_gauge!("windlass_group_claimed", "Calls that workers of groups hold");
    describe_gauge!("windlass_group_workers", "Workers of groups with a session");
    describe_gauge!("windlass_slots", "Steps that workers can run at the same time");
    describe_gauge!("windlass_executions_in_memory", "Executions in memory");
    describe_gauge!("windlass_quarantined_executions", "Quarantined executions");
    describe_gauge!("windlass_thread_lag_seconds", "Time since the last sign of life of a thread, by thread");
    describe_gauge!("windlass_recovered", "1 when recovery is complete");
    describe_gauge!("windlass_webhook_backlog", "Webhook events that are not delivered yet");
    describe_gauge!(
        "windlass_store_log_bytes",
        "Size of the write-ahead log of the store; long reads make it grow"
    );
    describe_counter!(
        "windlass_connections_refused_total",
        "Connections closed because their address had too many"
    );
    describe_counter!(
        "windlass_connections_overdue_total",
        "Connections closed because their client was silent, idle or read nothing for too long"
    );
    describe_gauge!("windlass_disk_free_bytes", "Free bytes on the disk of the data folder");
    describe_gauge!("windlass_disk_full", "1 when the disk has less free space than its reserve");
    describe_counter!(
        "windlass_executions_started_total",
        "Executions started since the start of the process"
    );
    describe_counter!("windlass_executions_ended_total", "Executions that ended, by status");
    describe_counter!("windlass_steps_total", "Steps that ended, by status");
    describe_counter!("windlass_step_retries_total", "Attempts that are retried");
    describe_counter!("windlass_journal_rows_read_total", "Rows of journals read for requests and streams");
    describe_counter!("windlass_lease_losses_total", "Leases that expired without a report of their worker");
}
