//! Responses that wait for clients. A client that reads slowly keeps its response in the server's memory, so the bytes
//! that wait for clients are counted per tenant: a tenant beyond its budget waits and is then refused. Other tenants
//! are not affected.

use crate::cache::lock;
use crate::problem::Problem;
use crate::tenant_counts::TenantCounts;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use windlass_store::Tenant;

/// Bytes of a response that are counted, sent and freed together. A response that is smaller is never refused.
const PART: usize = 64 * 1024;
/// Maximum time that a request waits for the budget of its tenant. Most clients take a response in less.
const WAIT_MAX: Duration = Duration::from_secs(5);
const RETRY_SECONDS: u64 = 5;
/// Maximum number of waiting requests of one tenant: each of them is woken whenever there is room again.
const WAITING_MAX: usize = 64;
/// Number of full budgets that all tenants may use together. Beyond it, tenants that use more than an eighth of their
/// own are refused.
const BUDGETS_MAX: usize = 4;
const SMALL_SHARE: usize = 8;

/// Maximum bytes of a page of entries, and of one entry. A page is built in a few milliseconds and read at once; the
/// list continues with its cursor.
pub(crate) const PAGE_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct Answers {
    /// Bytes of one tenant; 0: no limit.
    budget: usize,
    held: Mutex<BTreeMap<Tenant, usize>>,
    /// Requests that wait for the budget of their tenant.
    waiting: TenantCounts,
    freed: Notify,
}

/// Bytes that are counted until it is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    answers: Arc<Answers>,
    tenant: Tenant,
    bytes: usize,
}

/// A JSON body in parts.
#[derive(Debug)]
pub struct JsonParts {
    parts: Parts,
}

impl Answers {
    #[must_use]
    pub fn new(budget: usize) -> Answers {
        Answers { budget, held: Mutex::default(), waiting: TenantCounts::default(), freed: Notify::new() }
    }

    /// Waits until the clients of the tenant have read enough of earlier responses.
    pub async fn admit(&self, tenant: &Tenant) -> Result<(), Problem> {
        self.admit_within(tenant, WAIT_MAX).await
    }

    async fn admit_within(&self, tenant: &Tenant, wait: Duration) -> Result<(), Problem> {
        if self.has_room(&lock(&self.held), tenant) {
            return Ok(());
        }
        let _waiting = self.waiting.take(tenant, 1, WAITING_MAX).ok_or_else(|| self.refused())?;
        tokio::time::timeout(wait, self.room(tenant)).await.map_err(|_| self.refused())
    }

    /// Waits until the tenant may buffer more.
    pub async fn room(&self, tenant: &Tenant) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.has_room(&lock(&self.held), tenant) {
                return;
            }
            freed.await;
        }
    }

    /// Counts bytes that are held in any case.
    pub fn hold(self: &Arc<Self>, tenant: &Tenant, bytes: usize) -> HeldBytes {
        *lock(&self.held).entry(tenant.clone()).or_default() += bytes;
        HeldBytes { answers: self.clone(), tenant: tenant.clone(), bytes }
    }

    /// Writes a response as JSON, as far as the tenant's budget allows. This takes time, so it must run on a thread for
    /// blocking work.
    pub fn json(self: &Arc<Self>, tenant: &Tenant, value: &impl Serialize) -> Result<JsonParts, Problem> {
        self.write(tenant, |writer| Ok(serde_json::to_writer(writer, value)?))
    }

    /// Writes values as JSON, one on each line, as far as the tenant's budget allows.
    pub fn json_lines(
        self: &Arc<Self>,
        tenant: &Tenant,
        values: impl IntoIterator<Item = impl Serialize>,
    ) -> Result<JsonParts, Problem> {
        self.write(tenant, |writer| {
            values.into_iter().try_for_each(|value| {
                serde_json::to_writer(&mut *writer, &value)?;
                writer.write_all(b"\n")
            })
        })
    }

    fn write(
        self: &Arc<Self>,
        tenant: &Tenant,
        write: impl FnOnce(&mut Writer<'_>) -> io::Result<()>,
    ) -> Result<JsonParts, Problem> {
        let (parts, part) = (Parts::default(), Vec::new());
        let mut writer = Writer { answers: self, tenant, parts, part, is_refused: false };
        match write(&mut writer) {
            Ok(()) => Ok(JsonParts { parts: writer.finish() }),
            Err(_) if writer.is_refused => Err(self.refused()),
            Err(error) => Err(Problem::internal(error)),
        }
    }

    fn try_hold(self: &Arc<Self>, tenant: &Tenant, bytes: usize) -> Option<HeldBytes> {
        let mut held = lock(&self.held);
        if !self.has_room(&held, tenant) {
            return None;
        }
        *held.entry(tenant.clone()).or_default() += bytes;
        Some(HeldBytes { answers: self.clone(), tenant: tenant.clone(), bytes })
    }

    fn has_room(&self, held: &BTreeMap<Tenant, usize>, tenant: &Tenant) -> bool {
        let own = held.get(tenant).copied().unwrap_or_default();
        self.budget == 0 || own < self.budget / SMALL_SHARE || own < self.budget && !self.is_crowded(held)
    }

    fn is_crowded(&self, held: &BTreeMap<Tenant, usize>) -> bool {
        held.values().sum::<usize>() >= BUDGETS_MAX * self.budget
    }

    fn refused(&self) -> Problem {
        let message = format!(
            "answers of {} MiB wait for clients of the tenant that do not read them; read them, then retry after the \
             time in Retry-After",
            self.budget >> 20
        );
        Problem::too_many(message, RETRY_SECONDS)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut held = lock(&self.answers.held);
        let had_room = |held: &BTreeMap<Tenant, usize>| {
            (self.answers.has_room(held, &self.tenant), !self.answers.is_crowded(held))
        };
        let before = had_room(&held);
        if let Some(own) = held.get_mut(&self.tenant) {
            *own -= self.bytes;
            if *own == 0 {
                held.remove(&self.tenant);
            }
        }
        let after = had_room(&held);
        drop(held);
        // Parts are freed all the time. A request is woken only if it would find more room than before.
        if before != after {
            self.answers.freed.notify_waiters();
        }
    }
}

impl JsonParts {
    /// Builds the response with other headers than those of a JSON response.
    pub fn into_body(self) -> Body {
        Body::new(self.parts)
    }

    /// Returns the parts of the response, for a body of several responses.
    pub fn into_parts(self) -> VecDeque<Bytes> {
        self.parts.parts
    }
}

impl IntoResponse for JsonParts {
    fn into_response(self) -> Response {
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (StatusCode::OK, json, self.into_body()).into_response()
    }
}

/// Collects parts, each counted before it is kept.
struct Writer<'a> {
    answers: &'a Arc<Answers>,
    tenant: &'a Tenant,
    parts: Parts,
    part: Vec<u8>,
    is_refused: bool,
}

impl Writer<'_> {
    fn finish(mut self) -> Parts {
        let held = self.answers.hold(self.tenant, self.part.len());
        self.parts.push(Bytes::from(self.part), held);
        self.parts
    }
}

impl io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == PART {
            let Some(held) = self.answers.try_hold(self.tenant, PART) else {
                self.is_refused = true;
                return Err(io::Error::other("the budget of the tenant is used up"));
            };
            self.parts.push(Bytes::from(std::mem::take(&mut self.part)), held);
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The body of an answer: parts that are freed one by one as the connection takes them.
#[derive(Debug, Default)]
struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
}

/// A part, counted as long as any of it is in memory.
struct Part {
    bytes: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Parts {
    fn push(&mut self, bytes: Bytes, held: HeldBytes) {
        if !bytes.is_empty() {
            self.left += bytes.len() as u64;
            self.parts.push_back(Bytes::from_owner(Part { bytes, _held: held }));
        }
    }
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name)
    }

    #[tokio::test]
    async fn an_answer_is_counted_until_it_is_taken() {
        let answers = Arc::new(Answers::new(4 * PART));
        let text = "x".repeat(3 * PART);
        let first = answers.json(&tenant("a"), &text).unwrap();
        assert_eq!(lock(&answers.held)[&tenant("a")], 3 * PART + 2);
        let second = answers.json(&tenant("a"), &text).expect_err("no room for a second");
        assert_eq!((second.status().as_u16(), second.retry_after_seconds), (429, Some(RETRY_SECONDS)));
        assert!(answers.json(&tenant("a"), &"small").is_ok(), "a small one is never refused");
        assert!(answers.json(&tenant("b"), &text).is_ok(), "another tenant is not concerned");
        let body = first.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<String>(&body).unwrap(), text);
        assert!(lock(&answers.held).is_empty());
        assert!(answers.json(&tenant("a"), &text).is_ok());
    }

    #[tokio::test]
    async fn a_request_waits_until_others_have_read_and_not_for_ever() {
        let answers = Arc::new(Answers::new(PART));
        let held = answers.hold(&tenant("a"), PART);
        assert!(answers.admit_within(&tenant("a"), Duration::from_millis(1)).await.is_err());
        assert!(answers.admit(&tenant("b")).await.is_ok());
        let (waiting, who) = (answers.clone(), tenant("a"));
        let waits = tokio::spawn(async move { waiting.admit(&who).await.is_ok() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn waiting_requests_of_a_tenant_are_bounded() {
        let answers = Arc::new(Answers::new(PART));
        let who = tenant("a");
        let _held = answers.hold(&who, PART);
        let waiting: Vec<_> =
            (1..WAITING_MAX).map(|_| answers.waiting.take(&who, 1, WAITING_MAX).unwrap()).collect();
        let mut last = std::pin::pin!(answers.admit(&who));
        assert!(last.as_mut().now_or_never().is_none(), "it waits");
        let refused = answers.admit(&who).now_or_never().expect("it does not wait");
        assert_eq!(refused.expect_err("too many wait").status().as_u16(), 429);
        drop(waiting);
        assert!(answers.admit(&who).now_or_never().is_none(), "there is room again");
    }

    #[test]
    fn many_tenants_together_leave_room_for_those_that_hold_little() {
        let answers = Arc::new(Answers::new(8 * PART));
        let names = ["a", "b", "c", "d"].map(tenant);
        let _held: Vec<_> = names.iter().map(|name| answers.hold(name, 8 * PART)).collect();
        assert!(answers.try_hold(&tenant("e"), PART).is_some(), "it holds nothing yet");
        let _more = answers.hold(&tenant("e"), PART);
        assert!(answers.try_hold(&tenant("e"), PART).is_none());
    }
}
