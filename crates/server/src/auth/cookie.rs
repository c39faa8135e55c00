//! The cookie of the web page, which holds a token or a JWT. A script cannot read it, and other sites cannot use it.
//! Browsers send a cookie to every port of its host, so its name has the port: servers on one host keep their own sessions.

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
    let own = name(headers);
    pairs.filter(|(name, value)| *name == own && !value.is_empty()).map(|(_, value)| value).next()
}

/// Returns the name of the cookie at the address that the browser uses: with its port, if the address has one.
fn name(headers: &HeaderMap) -> String {
    let port = text(headers, HOST).and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{NAME}_{port}"),
        None => NAME.to_owned(),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
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
    let origin = text(headers, ORIGIN).and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    origin.is_some() && origin == text(headers, HOST)
}

/// Returns the header that sets the cookie for a session, or removes it. A browser that reaches the server through a proxy
/// with TLS reports that in the origin of its request.
pub(crate) fn set(request: &HeaderMap, token: Option<&str>, seconds: i64, is_encrypted: bool) -> HeaderValue {
    let (token, seconds) = token.map_or(("", 0), |token| (token, seconds));
    let is_encrypted =
        is_encrypted || text(request, ORIGIN).is_some_and(|origin| origin.starts_with("https://"));
    let (name, secure) = (name(request), if is_encrypted { "; Secure" } else { "" });
    let text = format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
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
        let cookies =
            "other=1; windlass_session=wdl_x; windlass_session_70=wdl_y; windlass_session_443x=wdl_z";
        pairs.chain([(COOKIE, HeaderValue::from_static(cookies))]).collect()
    }

    #[test]
    fn the_cookie_is_that_of_the_port_of_the_server() {
        let found = |host: &'static str| {
            let headers = request(&[("host", host)]);
            token(&Method::GET, &headers).map(str::to_owned)
        };
        assert_eq!(found("a:70").as_deref(), Some("wdl_y"));
        assert_eq!(found("[::1]:70").as_deref(), Some("wdl_y"));
        assert_eq!(found("a:71"), None, "the session of another server");
        for host in ["a", "[::1]", "a:", "a:443x"] {
            assert_eq!(found(host).as_deref(), Some("wdl_x"), "{host}");
        }
    }

    #[test]
    fn the_cookie_is_named_by_the_port_and_secure_behind_a_proxy_with_tls() {
        let made = |headers: &[(&'static str, &'static str)], is_encrypted| {
            let value = set(&request(headers), Some("wdl_x"), 60, is_encrypted);
            let text = value.to_str().unwrap().to_owned();
            (text.split('=').next().unwrap().to_owned(), text.ends_with("; Secure"))
        };
        assert_eq!(
            made(&[("host", "a:70"), ("origin", "http://a:70")], false),
            ("windlass_session_70".to_owned(), false)
        );
        assert_eq!(
            made(&[("host", "a"), ("origin", "https://a")], false),
            ("windlass_session".to_owned(), true)
        );
        assert_eq!(made(&[("host", "a:70")], true), ("windlass_session_70".to_owned(), true));
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
