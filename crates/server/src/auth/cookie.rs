//! The cookie of the web page, which holds a token or a JWT. A script cannot read it, and other sites cannot use it.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

const NAME: &str = "windlass_session";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns the credential in the cookie, if the request comes from the page itself.
pub(crate) fn token<'h>(method: &Method, headers: &'h HeaderMap) -> Option<&'h str> {
    value(headers).filter(|_| is_from_page(method, headers))
}

/// Reports whether the request has the cookie, valid or not.
pub(crate) fn is_present(headers: &HeaderMap) -> bool {
    value(headers).is_some()
}

fn value(headers: &HeaderMap) -> Option<&str> {
    let pairs = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, value)| *name == NAME && !value.is_empty()).map(|(_, value)| value).next()
}

/// Returns whether the request comes from the page. `SameSite=Strict` keeps the cookie from other sites, but a service
/// at another port of the same host is the same site. Browsers send the site of a request to a trustworthy address; to
/// others they send the origin of every request that is not read-only.
fn is_from_page(method: &Method, headers: &HeaderMap) -> bool {
    match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin") => true,
        // A request from the address bar or a bookmark.
        Some(b"none") => method.is_safe(),
        Some(_) => false,
        None => method.is_safe() || has_own_origin(headers),
    }
}

fn has_own_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    origin.is_some() && origin == text(HOST)
}

/// Returns the header that sets the cookie for a session, or removes it.
pub(crate) fn set(token: Option<&str>, seconds: i64, is_encrypted: bool) -> HeaderValue {
    let (token, seconds) = token.map_or(("", 0), |token| (token, seconds));
    let secure = if is_encrypted { "; Secure" } else { "" };
    let text = format!("{NAME}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::from_str(&text).expect("tokens are visible characters");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.chain([(COOKIE, HeaderValue::from_static("other=1; windlass_session=wdl_x"))]).collect()
    }

    #[test]
    fn the_cookie_is_used_only_for_requests_of_the_page() {
        let accepted = |method: Method, headers: &[(&'static str, &'static str)]| {
            token(&method, &request(headers)).is_some()
        };
        assert!(accepted(Method::POST, &[("sec-fetch-site", "same-origin")]));
        assert!(accepted(Method::GET, &[("sec-fetch-site", "none")]));
        assert!(!accepted(Method::POST, &[("sec-fetch-site", "none")]));
        assert!(!accepted(Method::GET, &[("sec-fetch-site", "same-site")]));
        assert!(!accepted(
            Method::POST,
            &[("sec-fetch-site", "cross-site"), ("origin", "http://a"), ("host", "a")]
        ));
        assert!(accepted(Method::POST, &[("origin", "http://a:70"), ("host", "a:70")]));
        assert!(!accepted(Method::POST, &[("origin", "http://a:71"), ("host", "a:70")]));
        assert!(!accepted(Method::POST, &[("host", "a:70")]));
    }
}
