//! Executions as OpenTelemetry traces: one span for the execution and one for each firing inside it, with the times of the
//! journal. A trace is sent when its execution has ended.

use crate::app::App;
use crate::database::DatabaseReader;
use crate::loaded::{LoadedExecution, ReadError};
use anyhow::Context as _;
use opentelemetry::trace::{
    Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use windlass_kernel::{ExecutionId, Millis, Net, Outcome, Phase};
use windlass_store::Reader as _;
use windlass_views::{End, Firing, NodeLabel, execution_id, status};

/// Path at which an OTLP collector accepts traces over HTTP.
const PATH: &str = "/v1/traces";

#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Traces {
    /// Sends traces to a collector, as in `http://localhost:4318`. If it does not respond, only the traces are lost.
    pub fn to(collector: &str) -> anyhow::Result<Traces> {
        let endpoint = format!("{collector}{PATH}");
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(&endpoint)
            .build()
            .with_context(|| format!("traces cannot be sent to {endpoint}"))?;
        let resource = Resource::builder().with_service_name("windlass").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        let tracer = provider.tracer("windlass");
        Ok(Traces { provider, tracer })
    }

    /// Sends waiting traces. Called from a thread that may block.
    pub fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!("the last traces were not sent: {error}");
        }
    }

    fn send(&self, ended: &LoadedExecution<'_>) {
        let LoadedExecution { stored, facts, net, history, .. } = ended;
        let name = facts.workflow.as_ref().map_or("", |workflow| &workflow.name);
        let (Some(from), Some(to)) = (history.started_at.or(history.created_at), history.ended_at) else {
            return;
        };
        let phase = history.state().phase();
        let attributes = [
            KeyValue::new("windlass.execution.id", execution_id(facts.execution)),
            KeyValue::new("windlass.tenant", stored.origin.tenant.to_string()),
            KeyValue::new("windlass.status", status(phase)),
        ];
        let builder = self.tracer.span_builder(format!("execution {name}")).with_kind(SpanKind::Internal);
        let span = self.tracer.build(builder.with_start_time(moment(from)).with_attributes(attributes));
        let around = Context::new().with_span(span);
        for firing in history.whole() {
            self.firing(net, firing, &around);
        }
        let span = around.span();
        if phase != Phase::Ended(Outcome::Completed) {
            let why = history.failure.as_ref().map(|(failure, _)| failure.message.clone());
            span.set_status(Status::error(why.unwrap_or_else(|| status(phase).to_owned())));
        }
        span.end_with_timestamp(moment(to));
    }

    fn firing(&self, net: &Net, firing: &Firing, around: &Context) {
        let (Some(from), Some(to)) = (firing.started_at(), firing.ended_at) else { return };
        let NodeLabel { id, name, kind } = NodeLabel::of(net.step(firing.step));
        let attributes = [
            KeyValue::new("windlass.node.id", id),
            KeyValue::new("windlass.node.type", kind),
            KeyValue::new("windlass.firing", i64::from(firing.number)),
            KeyValue::new("windlass.attempts", i64::from(firing.attempts)),
        ];
        let builder = self.tracer.span_builder(name).with_kind(SpanKind::Internal);
        let builder = builder.with_start_time(moment(from)).with_attributes(attributes);
        let mut span = self.tracer.build_with_context(builder, around);
        if let (Some(End::Failed { .. }), Some(failure)) = (firing.end, &firing.failure) {
            span.set_status(Status::error(failure.message.clone()));
        }
        span.end_with_timestamp(moment(to));
    }
}

/// Sends the trace of a new execution when it has ended, if a collector is set.
pub(crate) fn trace_new(app: &Arc<App>, id: ExecutionId) {
    if app.traces.is_some() {
        tokio::spawn(follow(app.clone(), id));
    }
}

/// Waits for the end of an execution and sends its trace.
async fn follow(app: Arc<App>, id: ExecutionId) {
    let follow = app.hub.follow(id);
    loop {
        let next = follow.next();
        let sender = app.clone();
        match app.followers.read(move |reader| send_if_ended(&sender, reader, id)).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(execution = execution_id(id), "cannot trace an execution: {error:?}")
            }
        }
        tokio::select! {
            () = next => {}
            () = app.stopped() => return,
        }
    }
}

/// Sends the trace of an execution if it has ended.
fn send_if_ended(app: &App, reader: &mut DatabaseReader, id: ExecutionId) -> Result<bool, ReadError> {
    let Some(stored) = reader.load(id)?.filter(|stored| stored.state.phase().is_ended()) else {
        return Ok(false);
    };
    if let Some(traces) = &app.traces {
        app.histories.view(reader, stored, |ended| traces.send(ended))?;
    }
    Ok(true)
}

fn moment(at: Millis) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}
