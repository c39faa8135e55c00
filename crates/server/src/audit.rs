//! Who did what: a row for every change that a caller makes, written by the transaction of the change, and rows for
//! requests that were refused.

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
use windlass_store::{Audit, Author, Entry, Tenant};

/// Rows of refused requests that one tenant has in a window; further ones are counted in one row. Enough to see what
/// somebody tries, and no way to fill a disk.
const ROWS_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Tenants whose windows are kept before those that are over are dropped.
const WINDOWS_MAX: usize = 10_000;

const REFUSED: &str = "access.refused";
const UNAUTHENTICATED: &str = "access.unauthenticated";

impl Caller {
    /// Says that this caller does it: goes with the request that asks for it.
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

/// Who sent a request, as far as it became known while it was answered.
#[derive(Debug, Clone, Default)]
pub struct RequestCaller(Arc<OnceLock<Caller>>);

impl RequestCaller {
    /// Notes who sent the request that these extensions are of.
    pub fn note(extensions: &Extensions, caller: &Caller) {
        if let Some(RequestCaller(known)) = extensions.get::<RequestCaller>() {
            // The first one is who showed the token.
            let _ = known.set(caller.clone());
        }
    }
}

/// Writes down requests that were refused: those of callers who may not do what they asked for, and those without a token
/// that is good.
pub async fn write_refused(
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
        // Nobody knows whose it was meant to be: whoever runs the server sees it.
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

/// Writes what was counted in windows that are over.
pub fn write_counted(app: &Arc<App>) {
    write(app, app.refusals.take_counted(Instant::now()));
}

/// The request was answered: it does not wait for the disk. There are few of them, so an engine that cannot take them has
/// other troubles.
fn write(app: &Arc<App>, audits: Vec<Audit>) {
    if audits.is_empty() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let entries = audits.into_iter().map(|audit| Entry::Audit(Box::new(audit))).collect();
        if let Err(problem) = app.store_entries(entries).await {
            tracing::warn!("refused requests are not in the audit log: {problem}");
        }
    });
}

/// How many refused requests each tenant has written down lately.
#[derive(Debug, Default)]
pub struct RefusedRequests {
    windows: Mutex<HashMap<Tenant, Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    rows: u32,
    /// The last one that was only counted, and how many were.
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
    /// Returns what is to be written of it now.
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
    fn a_flood_of_refused_requests_is_a_few_rows_and_a_count() {
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
