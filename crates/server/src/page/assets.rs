//! The files of the page, built from `ui/` and embedded.

use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write as _;
use std::sync::OnceLock;

/// Policy of the page: it loads files and sends requests from and to its own server only, and no page may embed it in
/// a frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const OPENER_POLICY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
/// Makes browsers check whether their copy is the newest.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
/// Paths for programs. An unknown path below them is an error, not a page.
const OF_PROGRAMS: [&str; 6] = ["/api/", "/ws/", "/hooks/", "/assets/", "/metrics", "/healthz"];

struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    packed: OnceLock<Packed>,
}

/// Data that is computed once from the bytes.
struct Packed {
    gzip: Vec<u8>,
    tag: HeaderValue,
}

macro_rules! files {
    ($($name:literal $kind:literal,)+) => {
        [$(File {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/dist/", $name)),
            packed: OnceLock::new(),
        },)+]
    };
}

static INDEX: [File; 1] = files! { "index.html" "text/html; charset=utf-8", };
static ASSETS: [File; 5] = files! {
    "assets/app.js" "text/javascript",
    "assets/Editor.js" "text/javascript",
    "assets/Graph.js" "text/javascript",
    "assets/app.css" "text/css",
    "assets/icon.svg" "image/svg+xml",
};

impl File {
    fn packed(&self) -> &Packed {
        self.packed.get_or_init(|| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
            let gzip = gzip
                .write_all(self.bytes)
                .and_then(|()| gzip.finish())
                .expect("memory takes what is written");
            let tag: String =
                Sha256::digest(self.bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            Packed { gzip, tag: HeaderValue::from_str(&format!("\"{tag}\"")).expect("digits") }
        })
    }

    fn response(&'static self, headers: &HeaderMap) -> Response {
        let Packed { gzip, tag } = self.packed();
        let shared = [
            (ETAG, tag.clone()),
            (CACHE_CONTROL, REVALIDATE),
            (CONTENT_SECURITY_POLICY, POLICY),
            OPENER_POLICY,
        ];
        if headers.get(IF_NONE_MATCH) == Some(tag) {
            return (StatusCode::NOT_MODIFIED, shared).into_response();
        }
        let kind = [
            (CONTENT_TYPE, HeaderValue::from_static(self.kind)),
            (VARY, HeaderValue::from_static("accept-encoding")),
        ];
        match contains(headers, ACCEPT_ENCODING, "gzip") {
            true => (shared, kind, [(CONTENT_ENCODING, "gzip")], &gzip[..]).into_response(),
            false => (shared, kind, self.bytes).into_response(),
        }
    }
}

fn contains(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains(word))
}

/// Returns the page itself. Its scripts read the rest of the address.
pub(crate) fn index(headers: &HeaderMap) -> Response {
    INDEX[0].response(headers)
}

/// Returns a file of the page, if there is one at the path.
pub(crate) fn asset(path: &str, headers: &HeaderMap) -> Option<Response> {
    let found = ASSETS.iter().find(|file| path.strip_prefix('/') == Some(file.name))?;
    Some(found.response(headers))
}

/// Reports whether a browser requests a page at an address that no route has.
pub(crate) fn is_page_request(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let is_of_programs = OF_PROGRAMS.iter().any(|prefix| uri.path().starts_with(prefix));
    method.is_safe() && !is_of_programs && contains(headers, ACCEPT, "text/html")
}
