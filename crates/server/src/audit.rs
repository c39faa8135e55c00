//! The audit log: an entry for every change of a caller, written in the transaction of the change, and entries for refused
//! requests.

use crate::app::App;
use crate::auth::Caller;
use crate::host::now;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use windlass_kernel::ExecutionId;
use windlass_protocol::{AgentCall, ResourceAsk, ResourceCall, Unit};
use windlass_store::{Audit, Author, Entry, Tenant};

/// Maximum number of entries for refused requests of one tenant in a window; further requests are counted in one entry. That
/// shows an attack without filling the disk.
const ROWS_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Number of windows from which expired ones are dropped.
const WINDOWS_MAX: usize = 10_000;

const REFUSED: &str = "access.refused";
const UNAUTHENTICATED: &str = "access.unauthenticated";
const REFUSED_CALL: &str = "worker.refused";

/// A call of a worker outside of the server for something that its unit may not have.
#[derive(Debug)]
pub(crate) struct RefusedCall {
    pub(crate) target: String,
    pub(crate) execution: ExecutionId,
}

impl RefusedCall {
    /// Maximum length of the target in characters. The worker chooses the name in it.
    const TARGET_MAX: usize = 200;

    /// Describes a decision of an agent, to be audited if the step has no agent.
    pub(crate) fn of_agent(call: &AgentCall) -> RefusedCall {
        RefusedCall { target: "decision of an agent".to_owned(), execution: ExecutionId(call.unit.execution) }
    }

    /// Describes the start of another execution, to be audited if the step does not name it.
    pub(crate) fn of_child(unit: Unit) -> RefusedCall {
        RefusedCall { target: "sub-workflow".to_owned(), execution: ExecutionId(unit.execution) }
    }

    /// Returns the entry for the refusal.
    pub(crate) fn audit(self, caller: &Caller) -> Audit {
        let details = json!({ "execution": windlass_views::execution_id(self.execution), "count": 1 });
        caller.audit_entry(REFUSED_CALL, &self.target, details)
    }

    /// Describes a call for a resource, to be audited if it is refused.
    pub(crate) fn of(call: &ResourceCall) -> RefusedCall {
        let target = match &call.ask {
            ResourceAsk::OpenSecret { name } => format!("secret {name}"),
            ResourceAsk::GetArtifact { key } | ResourceAsk::GetArtifactFile { key } => {
                format!("artifact {key}")
            }
            ResourceAsk::StoreMemory { key, .. } => format!("memory {key}"),
            ResourceAsk::SearchMemory(_) => "memories".to_owned(),
            ResourceAsk::FindRoutingKey { .. } => "routing key".to_owned(),
            ResourceAsk::GetRights => "rights".to_owned(),
            ResourceAsk::PutArtifact { .. } => "new artifact".to_owned(),
        };
        let target = target.chars().take(RefusedCall::TARGET_MAX).collect();
        RefusedCall { target, execution: ExecutionId(call.unit.execution) }
    }
}

impl Caller {
    /// Returns the audit entry for an action of this caller.
    #[must_use]
    pub fn audit_entry(&self, action: &str, target: &str, details: Value) -> Audit {
        let Author { actor, role } = self.author();
        let (tenant, at) = (self.tenant.clone(), now());
        Audit { tenant, at, actor, role, action: action.to_owned(), target: target.to_owned(), details }
    }

    #[must_use]
    pub fn author(&self) -> Author {
        Author { actor: self.id.clone(), role: self.role.name().to_owned() }
    }
}

/// The caller of a request, set when the request is authenticated.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestCaller(Arc<OnceLock<Caller>>);

impl RequestCaller {
    /// Sets the caller of the request with these extensions.
    pub(crate) fn note(extensions: &Extensions, caller: &Caller) {
        if let Some(RequestCaller(known)) = extensions.get::<RequestCaller>() {
            // Only the first caller is set: the holder of the token.
            let _ = known.set(caller.clone());
        }
    }
}

/// Writes audit entries for requests that were refused with 401 or 403.
pub(crate) async fn write_refused(
    State(app): State<Arc<App>>,
    matched: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let (sender, method) = (RequestCaller::default(), request.method().clone());
    request.extensions_mut().insert(sender.clone());
    let response = next.run(request).await;
    if matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) {
        let route = matched.as_ref().map_or("none", MatchedPath::as_str);
        let audit = refused(sender.0.get(), &format!("{method} {route}"), response.status());
        write(&app, app.refusals.note(audit, Instant::now()));
    }
    response
}

fn refused(caller: Option<&Caller>, target: &str, status: StatusCode) -> Audit {
    let details = json!({ "status": status.as_u16(), "count": 1 });
    match caller {
        Some(caller) => caller.audit_entry(REFUSED, target, details),
        // The tenant is unknown, so the operators of the server get the entry.
        None => Audit {
            tenant: Tenant::default(),
            at: now(),
            actor: "anonymous".to_owned(),
            role: "none".to_owned(),
            action: UNAUTHENTICATED.to_owned(),
            target: target.to_owned(),
            details,
        },
    }
}

/// Writes audit entries for calls of workers that were refused, although their requests were answered. Their number is bounded
/// like that of refused requests.
pub(crate) fn note_refused_calls(
    app: &Arc<App>,
    caller: &Caller,
    refused: impl IntoIterator<Item = RefusedCall>,
) {
    let now = Instant::now();
    let written = refused.into_iter().flat_map(|call| app.refused_calls.note(call.audit(caller), now));
    write(app, written.collect());
}

/// Writes the counts of expired windows.
pub(crate) fn write_counted(app: &Arc<App>) {
    for refusals in [&app.refusals, &app.refused_calls] {
        write(app, refusals.take_counted(Instant::now()));
    }
}

/// Writes audit entries in the background: the response does not wait for the disk. Their number is bounded.
fn write(app: &Arc<App>, audits: Vec<Audit>) {
    if audits.is_empty() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let entries = audits.into_iter().map(|audit| Entry::Audit(Box::new(audit))).collect();
        if let Err(problem) = app.store_entries(entries).await {
            tracing::warn!("cannot write refused requests to the audit log: {problem}");
        }
    });
}

/// Windows of refused requests, by tenant.
#[derive(Debug, Default)]
pub struct RefusedRequests {
    windows: Mutex<HashMap<Tenant, Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    rows: u32,
    /// The last request that was only counted, and their number.
    counted: Option<(Audit, u64)>,
}

impl Window {
    fn new(since: Instant) -> Window {
        Window { since, rows: 0, counted: None }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= WINDOW
    }

    fn take_counted(&mut self) -> Option<Audit> {
        let (audit, count) = self.counted.take()?;
        Some(Audit { details: json!({ "count": count, "last": audit.details }), ..audit })
    }
}

impl RefusedRequests {
    /// Counts a refused request, and returns the entries to write now.
    fn note(&self, audit: Audit, now: Instant) -> Vec<Audit> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= WINDOWS_MAX {
            windows.retain(|_, window| !window.is_over(now) || window.counted.is_some());
        }
        let window = windows.entry(audit.tenant.clone()).or_insert_with(|| Window::new(now));
        let mut written = Vec::new();
        if window.is_over(now) {
            written.extend(window.take_counted());
            *window = Window::new(now);
        }
        if window.rows < ROWS_MAX {
            window.rows += 1;
            written.push(audit);
        } else {
            let count = window.counted.take().map_or(0, |(_, count)| count);
            window.counted = Some((audit, count + 1));
        }
        written
    }

    fn take_counted(&self, now: Instant) -> Vec<Audit> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let over = windows.values_mut().filter(|window| window.is_over(now));
        over.filter_map(Window::take_counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refused_requests_becomes_a_few_entries_and_a_count() {
        let (refusals, began) = (RefusedRequests::default(), Instant::now());
        let one = || refused(None, "GET /x", StatusCode::UNAUTHORIZED);
        let rows: usize = (0..1_000).map(|_| refusals.note(one(), began).len()).sum();
        assert_eq!(rows, ROWS_MAX as usize);
        assert!(refusals.take_counted(began).is_empty(), "the window is not over");
        let counted = refusals.take_counted(began + WINDOW);
        assert_eq!(counted.len(), 1);
        assert_eq!(counted[0].details["count"], 1_000 - u64::from(ROWS_MAX));
        assert_eq!(refusals.note(one(), began + WINDOW).len(), 1, "a new window writes again");
    }
}
