//! Executions that wait for their uploads. An execution ends when every artifact that it names is uploaded, or when
//! none of the others is attempted any more.

use super::write;
use crate::app::App;
use crate::database::DatabaseReader;
use crate::host::now;
use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use windlass_engine::{EngineAnswer, Request};
use windlass_kernel::{ExecutionId, Input};
use windlass_protocol::{Failure, codes};
use windlass_store::{
    Artifacts, AwaitedUploads, ObjectState, ObjectWrite, Objects as _, PutArtifact, StoreError, StoredObject,
};

/// Number of executions that are read at a time.
const PAGE: usize = 256;

/// Artifacts that each waiting execution names and that were not uploaded at the last pass.
#[derive(Default)]
pub(super) struct Waits(BTreeMap<ExecutionId, BTreeSet<String>>);

/// Uploads that an execution waits for.
#[derive(Default)]
struct OpenUploads {
    waiting: BTreeSet<String>,
    failed: Vec<StoredObject>,
    /// Artifacts without rows about an upload.
    put: Vec<ObjectWrite>,
}

impl Waits {
    pub(super) async fn look(&mut self, app: &App) -> Result<(), Problem> {
        let (mut after, mut seen) = (None, BTreeSet::new());
        loop {
            let page = app.followers.look(move |reader| reader.awaited_uploads(after, PAGE)).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.execution);
            for awaited in page {
                seen.insert(awaited.execution);
                self.judge(app, awaited).await?;
            }
        }
        self.0.retain(|execution, _| seen.contains(execution));
        Ok(())
    }

    async fn judge(&mut self, app: &App, awaited: AwaitedUploads) -> Result<(), Problem> {
        let execution = awaited.execution;
        let (known, artifacts) = (self.0.remove(&execution), app.artifacts.clone());
        let read = move |reader: &mut DatabaseReader| read_open(reader, &artifacts, &awaited, known);
        let open = app.followers.look(read).await?;
        if !open.put.is_empty() {
            write(app, open.put).await?;
        }
        if open.waiting.is_empty() {
            return end(app, execution, describe(&open.failed)).await;
        }
        let failed = open.failed.into_iter().map(|object| object.key);
        self.0.insert(execution, open.waiting.into_iter().chain(failed).collect());
        Ok(())
    }
}

/// Reads the state of everything that an execution names.
fn read_open(
    reader: &mut DatabaseReader,
    artifacts: &Artifacts,
    awaited: &AwaitedUploads,
    known: Option<BTreeSet<String>>,
) -> Result<OpenUploads, StoreError> {
    let AwaitedUploads { execution, tenant } = awaited;
    let named = known.map_or_else(|| reader.named_artifacts(*execution), Ok)?;
    let mut open = OpenUploads::default();
    for key in named {
        let object = reader.object(tenant, &key)?;
        match object.as_ref().map(|object| object.state) {
            Some(ObjectState::Stored) => {}
            Some(ObjectState::Waiting) => drop(open.waiting.insert(key)),
            Some(ObjectState::Failed) => open.failed.extend(object),
            Some(ObjectState::Unused) | None => {
                // Without a file, the string only looks like a key.
                if let Some((_, bytes)) = artifacts.find_file(tenant, &key)? {
                    let put = PutArtifact { tenant: tenant.clone(), key: key.clone(), bytes, at: now() };
                    open.put.push(ObjectWrite::Put(put));
                    open.waiting.insert(key);
                }
            }
        }
    }
    Ok(open)
}

fn describe(failed: &[StoredObject]) -> Option<Failure> {
    let StoredObject { key, bytes, attempts, error, .. } = failed.first()?;
    let why = error.as_deref().unwrap_or_default();
    let others = match failed.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    let message = format!("artifact {key} of {bytes} bytes{others}: {attempts} attempts, the last: {why}");
    Some(Failure::new(codes::UPLOAD_FAILED, message))
}

async fn end(app: &App, execution: ExecutionId, failure: Option<Failure>) -> Result<(), Problem> {
    let input = Input::Uploaded { failure };
    match app.ask(Request::Give { execution, input, audit: None }).await? {
        EngineAnswer::Accepted => {}
        // The execution was cancelled meanwhile.
        other => tracing::debug!(?other, %execution, "an execution is not ended by its uploads"),
    }
    Ok(())
}
