//! A request with its redirects, up to the last answer.

use super::answer::{self, HttpAnswer};
use super::clients::Clients;
use super::config::{Request, place};
use crate::egress::{Refused, connection_code};
use crate::failure::{self, failure, shown};
use crate::footprint::Share;
use crate::pipeline::CallResult;
use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderName, LOCATION,
    PROXY_AUTHORIZATION,
};
use reqwest::{Client, Method, Response, StatusCode, Url};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use windlass_protocol::{Failure, codes};

const HOPS_MAX: usize = 10;

/// Headers that identify the caller.
const SECRET: [HeaderName; 6] = [
    AUTHORIZATION,
    COOKIE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-auth-token"),
];

pub(super) async fn exchange(request: &Request, clients: &Clients, share: &Share) -> CallResult {
    let began = Instant::now();
    let client = match clients.with(request.limits.connect).await {
        Ok(client) => client,
        Err(error) => return Err(failure(codes::HTTP_NOT_STARTED, error)).into(),
    };
    let mut hop = request.clone();
    match answered(&mut hop, &client, clients).await {
        Err(failure) => Err(failure).into(),
        Ok(response) => answer::read_answer(response, &hop, began, share).await,
    }
}

/// Follows redirects. The returned hop is the last request.
async fn answered(hop: &mut Request, client: &Client, clients: &Clients) -> Result<HttpAnswer, Box<Failure>> {
    for _ in 0..=HOPS_MAX {
        let host = hop.url.host_str().unwrap_or_default();
        clients.egress.check_host(host).map_err(|refused| not_allowed(hop, &refused))?;
        let response = sent(hop, client).await?;
        match redirect(hop, &response)? {
            Some(next) => *hop = next,
            None => return Ok(HttpAnswer(response)),
        }
    }
    let message = format!("{} was redirected more than {HOPS_MAX} times", hop.describe());
    Err(failure(codes::TOO_MANY_REDIRECTS, message))
}

async fn sent(hop: &Request, client: &Client) -> Result<Response, Box<Failure>> {
    let mut builder = client.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone());
    if let Some(body) = &hop.body {
        builder = builder.body(body.clone());
    }
    let response = in_time(hop, hop.limits.first_answer(), builder.send()).await?;
    response.map_err(|error| broken(hop, error))
}

/// Applies a limit to one wait; None waits without a limit.
pub(super) async fn in_time<T>(
    hop: &Request,
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, Box<Failure>> {
    let Some(limit) = limit else { return Ok(work.await) };
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    timeout(limit, work).await.map_err(|_| failure::timeout(&hop.describe(), limit_ms))
}

/// Returns the next request, if the answer is a redirect.
fn redirect(hop: &Request, response: &Response) -> Result<Option<Request>, Box<Failure>> {
    let status = response.status();
    let Some(location) = response.headers().get(LOCATION).filter(|_| hop.follows && is_redirect(status))
    else {
        return Ok(None);
    };
    let target = location.to_str().ok().and_then(|location| hop.url.join(location).ok());
    let target = target.filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let Some(url) = target else {
        let location = shown(&String::from_utf8_lossy(location.as_bytes()));
        let message =
            format!("{} was redirected to `{location}`, which is not a valid address", hop.describe());
        return Err(failure(codes::BAD_REDIRECT, message));
    };
    let mut next = Request { url, ..hop.clone() };
    if changes_to_get(status, &hop.method) {
        next.method = Method::GET;
        next.body = None;
        [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING].iter().for_each(|name| {
            next.headers.remove(name);
        });
    }
    if !is_same_origin(&hop.url, &next.url) {
        next.secret_param = None;
        SECRET.iter().chain(&hop.secret).for_each(|name| {
            next.headers.remove(name);
        });
    }
    Ok(Some(next))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn changes_to_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => method != Method::HEAD && method != Method::GET,
        301 | 302 => method == Method::POST,
        _ => false,
    }
}

fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Returns the failure of a request without an answer, or of an answer that broke off.
pub(super) fn broken(hop: &Request, error: reqwest::Error) -> Box<Failure> {
    let causes = || std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    if let Some(refused) = causes().find_map(|cause| cause.downcast_ref::<Refused>()) {
        return not_allowed(hop, refused);
    }
    let root = causes().last().map(|cause| shown(&cause.to_string())).unwrap_or_default();
    let message = format!("{} failed: {root}", hop.describe());
    if error.is_builder() {
        return failure::invalid(message);
    }
    if error.is_timeout() {
        return failure(codes::NETWORK_TIMEOUT, message);
    }
    failure(connection_code(&error), message)
}

fn not_allowed(hop: &Request, refused: &Refused) -> Box<Failure> {
    failure(codes::EGRESS_REFUSED, format!("{} {} is not made: {refused}", hop.method, place(&hop.url)))
}
