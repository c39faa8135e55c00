//! Middleware of all routes: rate limits of clients without a valid token, and security headers for browsers.

use crate::app::App;
use crate::auth::cookie;
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

/// Maximum burst of one address without a valid token, as a multiple of its rate: for a client that requests everything again
/// after its restart.
const BURST: u32 = 5;
/// Routes of load balancers, which are not limited: they cost next to nothing.
const FREE: [&str; 2] = ["/healthz", "/readyz"];
/// WebSockets send their token later, and a client may open all of its own at once after a restart of the server. Their use
/// before that is bounded by time and by the connections of an address.
const WEBSOCKETS: &str = "/ws/";
const HOOKS: &str = "/hooks/";

/// Default headers of responses. A response is data for the caller: browsers must not treat it as a page or a script, cache
/// it, or reveal its address to other sites.
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

pub(crate) async fn set_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(value);
    }
    response
}

/// Limits requests without a valid token by their address. A request with a valid token is never refused here, however many
/// come from its address without one.
pub(crate) async fn limit_anonymous(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
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
    let has_credential =
        request.headers().contains_key(AUTHORIZATION) || cookie::is_present(request.headers());
    if !is_hook && !has_credential {
        return match take() {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
    }
    let response = next.run(request).await;
    let is_anonymous = match response.status() {
        StatusCode::UNAUTHORIZED => true,
        // An open hook has limits of its own; requests that guess the paths of hooks are counted here.
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => is_hook,
        _ => false,
    };
    match is_anonymous.then(take) {
        Some(Err(problem)) => problem.into_response(),
        Some(Ok(())) | None => response,
    }
}

fn take_anonymous(app: &App, per_second: u32, ClientAddress(client): ClientAddress) -> Result<(), Problem> {
    let rate = Rate::new(per_second, Some(per_second.saturating_mul(BURST)));
    app.rates.take(RateKey::Anonymous(client), rate, Instant::now())
}
