//! What every request passes before and after its route: limits of clients without a good token, and headers that keep
//! browsers from doing more with a response than reading it.

use crate::app::App;
use crate::client::ClientAddress;
use crate::limits::{Rate, RateKey};
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use std::time::Instant;

/// Requests at once of one address without a good token, as a multiple of its rate: a page with many parts, or a restart of
/// a client that asks for everything anew.
const BURST: u32 = 5;
/// What load balancers ask for; it costs next to nothing.
const FREE: [&str; 2] = ["/healthz", "/readyz"];
/// WebSockets bring their token later, and a client may open all of its own at once after a restart of the server. What they
/// take before that is bounded by time and by the connections of an address.
const WEBSOCKETS: &str = "/ws/";
const HOOKS: &str = "/hooks/";

/// Headers of responses that do not say otherwise. A response is data for the one who asked: no browser may take it for a
/// page or a script, keep it, or tell others where it came from.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
        ),
    ),
];

pub async fn set_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(value);
    }
    response
}

/// Counts what comes without a good token by the address it comes from. A good token is never refused here, however much
/// comes from its address without one.
pub async fn limit_anonymous(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some((rate, client)) = app.settings.anonymous_rate_limit.zip(request.extensions().get().copied())
    else {
        return next.run(request).await;
    };
    let take = || take_anonymous(&app, rate, client);
    let path = request.uri().path();
    let is_hook = path.starts_with(HOOKS);
    if FREE.contains(&path) || path.starts_with(WEBSOCKETS) {
        return next.run(request).await;
    }
    if !is_hook && !request.headers().contains_key(AUTHORIZATION) {
        return match take() {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
    }
    let response = next.run(request).await;
    let is_stranger = match response.status() {
        StatusCode::UNAUTHORIZED => true,
        // An open hook has limits of its own; whoever looks for hooks is counted here.
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => is_hook,
        _ => false,
    };
    match is_stranger.then(take) {
        Some(Err(problem)) => problem.into_response(),
        Some(Ok(())) | None => response,
    }
}

fn take_anonymous(app: &App, per_second: u32, ClientAddress(client): ClientAddress) -> Result<(), Problem> {
    let rate = Rate::new(per_second, Some(per_second.saturating_mul(BURST)));
    app.rates.take(RateKey::Anonymous(client), rate, Instant::now())
}
