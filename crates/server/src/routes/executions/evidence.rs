//! `GET /api/v1/executions/{executionId}/evidence`: the record of all attempts, results and actions of people.

use super::{TAG, stored_of};
use crate::anchor::Anchor;
use crate::answers::{Answers, JsonParts};
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::ids;
use crate::journal_pages::JournalCursor;
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::ExecutionId;
use windlass_views::{Evidence, EvidenceProjection};

const LIST: Paged = Paged { name: "evidence", usual: 100, most: 1_000 };
/// Number of records that an export reads at a time: about 200 KiB, which wait in memory for a slow client.
const EXPORT_RECORDS: usize = 256;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct EvidenceQuery {
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    cursor: Option<String>,
    #[param(inline)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// One page.
    #[default]
    Json,
    /// The whole chain, one record per line; the last record has the anchor.
    Jsonl,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Entries {
    /// Records in the order in which they happened, each with the hash of the previous one.
    evidence: Vec<Evidence>,
    pagination: Pagination,
    /// Signed end of the chain, on the last page, if the server has a key
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    anchor: Option<Anchor>,
}

/// Get attempts, ends and actions of people, as a chain of hashes
#[utoipa::path(get, path = "/api/v1/executions/{executionId}/evidence", tag = TAG, security(("bearer" = [])),
    params(("executionId" = String, Path), EvidenceQuery),
    responses((status = 200, content((Entries = "application/json"), (String = "application/jsonl"))), Refusals))]
pub(crate) async fn evidence(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Params(asked): Params<EvidenceQuery>,
) -> Result<Response, Problem> {
    caller.may(Permission::View)?;
    let chain = StoredChain { id: ids::execution(&id)?, caller, app };
    match asked.format.unwrap_or_default() {
        Format::Json => chain.page(&asked).await.map(IntoResponse::into_response),
        Format::Jsonl if asked.limit.is_some() || asked.cursor.is_some() => {
            let field = if asked.limit.is_some() { "limit" } else { "cursor" };
            Err(Problem::invalid(field, "is for pages; `format=jsonl` returns the whole chain"))
        }
        Format::Jsonl => chain.export().await,
    }
}

/// The chain of an execution, for a caller.
struct StoredChain {
    id: ExecutionId,
    caller: Caller,
    app: Arc<App>,
}

/// Consecutive records.
struct ChainPart {
    evidence: Vec<Evidence>,
    next: Option<JournalCursor>,
    /// The anchor, if it is the last part.
    anchor: Option<Anchor>,
}

/// A line of an export.
#[derive(Serialize)]
struct Line<'e> {
    #[serde(flatten)]
    record: &'e Evidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<&'e Anchor>,
}

/// Lines of an export that were read, and the position of the next one.
type Read = (VecDeque<Bytes>, Option<JournalCursor>);

impl StoredChain {
    async fn page(&self, asked: &EvidenceQuery) -> Result<JsonParts, Problem> {
        let limit = LIST.limit(asked.limit)?;
        let from = LIST.place(asked.cursor.as_deref(), |text| text.parse().ok())?.unwrap_or_default();
        self.app.answers.admit(&self.caller.tenant).await?;
        let tenant = self.caller.tenant.clone();
        self.read(from, limit, move |answers, part| {
            let ChainPart { evidence, next, anchor } = part;
            answers.json(&tenant, &Entries { evidence, pagination: LIST.next(next), anchor })
        })
        .await
    }

    async fn export(self) -> Result<Response, Problem> {
        self.app.answers.admit(&self.caller.tenant).await?;
        let first = self.read_lines(JournalCursor::default()).await?;
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"))];
        Ok((kind, Body::from_stream(self.stream(first))).into_response())
    }

    /// Continues an export while its client reads it. An error ends the body early, which clients detect.
    fn stream(self, first: Read) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::try_unfold((self, first), |(chain, (mut parts, mut next))| async move {
            loop {
                if let Some(part) = parts.pop_front() {
                    return Ok(Some((part, (chain, (parts, next)))));
                }
                let Some(from) = next else { return Ok(None) };
                chain.app.answers.room(&chain.caller.tenant).await;
                let read = chain.read_lines(from).await;
                (parts, next) = read.map_err(|problem| io::Error::other(problem.to_string()))?;
            }
        })
    }

    async fn read_lines(&self, from: JournalCursor) -> Result<Read, Problem> {
        let tenant = self.caller.tenant.clone();
        self.read(from, EXPORT_RECORDS, move |answers, part| {
            let last = part.evidence.len().saturating_sub(1);
            let lines = part.evidence.iter().enumerate().map(|(place, record)| {
                let anchor = part.anchor.as_ref().filter(|_| place == last);
                Line { record, anchor }
            });
            Ok((answers.json_lines(&tenant, lines)?.into_parts(), part.next))
        })
        .await
    }

    /// Reads at most `limit` records. `write` runs where they are read.
    async fn read<T: Send + 'static>(
        &self,
        from: JournalCursor,
        limit: usize,
        write: impl Fn(&Arc<Answers>, ChainPart) -> Result<T, Problem> + Send + Sync + 'static,
    ) -> Result<T, Problem> {
        let (app, caller, id) = (self.app.clone(), self.caller.clone(), self.id);
        let readers = app.readers.of(&caller.tenant);
        let read = readers.read_in_slices(None, move |reader, page, slice| {
            let histories = &app.histories;
            let (net, page) = match page {
                Some(page) => page,
                None => {
                    let stored = stored_of(reader, &caller, id)?;
                    let net = histories.net(reader, stored.state.head.net)?.ok_or(ReadError::NoNet(id))?;
                    let first = EvidenceProjection::new(id, stored.origin.options.correlation.as_deref());
                    page.insert((net, histories.evidence.begin(id, first, from, limit)))
                }
            };
            let Some((evidence, next)) = histories.evidence.read(reader, net, page, slice)? else {
                return Ok(None);
            };
            let seal = app.seal.as_ref().filter(|_| next.is_none());
            let anchor = seal.and_then(|seal| Anchor::of(seal, evidence.last()?));
            write(&app.answers, ChainPart { evidence, next, anchor }).map(Some)
        });
        read.await
    }
}
