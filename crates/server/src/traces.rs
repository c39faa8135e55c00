//! Executions as OpenTelemetry traces: one span for the execution, one for each firing inside it, with the times that the
//! journal tells. A trace is sent when its execution has ended.

use crate::app::App;
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
use windlass_dialects::view::{End, Firing, NodeLabel, Story, execution_id, status};
use windlass_kernel::{ExecutionId, Millis, Net, Outcome, Phase};
use windlass_store::{Reader as _, StoreError};

/// Where OTLP over HTTP takes traces.
const PATH: &str = "/v1/traces";

#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// An ended execution.
struct Ended {
    id: ExecutionId,
    name: String,
    tenant: String,
    net: Arc<Net>,
    story: Story,
}

impl Traces {
    /// Sends to a collector, as in `http://localhost:4318`. One that is away costs traces and nothing else.
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

    /// Sends what waits; called from a thread that may wait.
    pub fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!("the last traces were not sent: {error}");
        }
    }

    fn tell(&self, ended: &Ended) {
        let Ended { id, name, tenant, net, story } = ended;
        let (Some(from), Some(to)) = (story.started_at.or(story.created_at), story.ended_at) else { return };
        let phase = story.state.phase();
        let attributes = [
            KeyValue::new("windlass.execution.id", execution_id(*id)),
            KeyValue::new("windlass.tenant", tenant.clone()),
            KeyValue::new("windlass.status", status(phase)),
        ];
        let builder = self.tracer.span_builder(format!("execution {name}")).with_kind(SpanKind::Internal);
        let span = self.tracer.build(builder.with_start_time(moment(from)).with_attributes(attributes));
        let around = Context::new().with_span(span);
        for firing in story.whole() {
            self.firing(net, firing, &around);
        }
        let span = around.span();
        if phase != Phase::Ended(Outcome::Completed) {
            let why = story.failure.as_ref().map(|(failure, _)| failure.message.clone());
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

/// A new execution will be told when it has ended, if anyone wants to hear of it.
pub fn begun(app: &Arc<App>, id: ExecutionId) {
    if app.traces.is_some() {
        tokio::spawn(follow(app.clone(), id));
    }
}

/// Waits for the end of an execution and sends its trace.
async fn follow(app: Arc<App>, id: ExecutionId) {
    let follow = app.hub.follow(id);
    loop {
        let next = follow.next();
        match app.readers.look(move |reader| ended(reader, id)).await {
            Ok(Some(ended)) => {
                if let Some(traces) = &app.traces {
                    traces.tell(&ended);
                }
                return;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(execution = execution_id(id), "not traced now: {error:?}"),
        }
        tokio::select! {
            () = next => {}
            () = app.stopped() => return,
        }
    }
}

/// None while it goes on.
fn ended(
    reader: &mut windlass_store::sqlite::SqliteReader,
    id: ExecutionId,
) -> Result<Option<Ended>, StoreError> {
    let Some(stored) = reader.load(id)?.filter(|stored| stored.state.phase().is_ended()) else {
        return Ok(None);
    };
    let Some(net) = reader.net(stored.state.head.net)? else { return Ok(None) };
    let journal = windlass_engine::journal(reader, id)?;
    let story = Story::of(&net, &journal).map_err(|illegal| StoreError::Corrupt(illegal.to_string()))?;
    let definition = stored.definition.map(|id| reader.definition(id)).transpose()?.flatten();
    let name = definition.map(|definition| definition.name).unwrap_or_default();
    Ok(Some(Ended { id, name, tenant: stored.tenant.to_string(), net: Arc::new(net), story }))
}

fn moment(at: Millis) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}
