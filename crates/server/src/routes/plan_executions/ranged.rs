//! Bytes with `Range`: values in memory, and files that are read part by part.

use crate::objects::Bucket;
use crate::problem::{Problem, ProblemCode};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use windlass_store::Tenant;

/// Bytes of a file that are read at a time.
const PART: usize = 64 << 10;
/// Seconds after which a client may retry while the bucket cannot be read.
const RETRY_SECONDS: u64 = 5;

/// Bytes of an output or a log.
#[derive(Debug)]
pub(in crate::routes) enum Content {
    Value(Vec<u8>),
    /// A file and its length. It never changes.
    File(File, u64),
    /// An artifact whose only copy is in the bucket.
    Object(ObjectContent),
}

#[derive(Debug)]
pub(in crate::routes) struct ObjectContent {
    pub bucket: Arc<Bucket>,
    pub tenant: Tenant,
    pub key: String,
    pub length: u64,
}

impl Content {
    fn length(&self) -> u64 {
        match self {
            Content::Value(bytes) => bytes.len() as u64,
            Content::File(_, length) => *length,
            Content::Object(object) => object.length,
        }
    }

    async fn body(self, range: &Range<u64>) -> Result<Body, Problem> {
        match self {
            Content::Value(bytes) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let range = place(range.start)..place(range.end);
                Ok(Body::from(Bytes::from(bytes).slice(range)))
            }
            Content::File(mut file, _) => {
                file.seek(SeekFrom::Start(range.start)).map_err(Problem::internal)?;
                let left = range.end - range.start;
                Ok(Body::from_stream(stream::try_unfold((file, left), read_part)))
            }
            Content::Object(ObjectContent { bucket, tenant, key, length }) => {
                let read = bucket.read(&tenant, &key, length, range.clone()).await;
                let pieces = read.map_err(|error| {
                    let message = format!("the artifact cannot be read at the moment: {error}");
                    Problem::new(ProblemCode::Unavailable, message).retry_after(RETRY_SECONDS)
                })?;
                Ok(Body::from_stream(pieces))
            }
        }
    }
}

/// Reads the next part of a file on a thread for blocking work.
async fn read_part((file, left): (File, u64)) -> io::Result<Option<(Bytes, (File, u64))>> {
    if left == 0 {
        return Ok(None);
    }
    let read = move || {
        let mut part = vec![0; usize::try_from(left).unwrap_or(PART).min(PART)];
        let count = (&file).read(&mut part)?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than its length"));
        }
        part.truncate(count);
        Ok(Some((Bytes::from(part), (file, left - count as u64))))
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

/// Responds with the content, or with the part of it that the request asks for.
pub(in crate::routes) async fn respond(
    content: Content,
    media_type: &HeaderValue,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let length = content.length();
    let number = |value: u64| HeaderValue::from(value);
    let wanted = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let (status, range) = match wanted.map(|text| parse_range(text, length)) {
        None | Some(RequestedRange::Whole) => (StatusCode::OK, 0..length),
        Some(RequestedRange::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(RequestedRange::OutOfRange) => {
            let limits = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, limits).into_response());
        }
    };
    let mut response = content.body(&range).await?.into_response();
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    fields.insert(header::CONTENT_TYPE, media_type.clone());
    fields.insert(header::CONTENT_LENGTH, number(range.end - range.start));
    // A browser must not show the output of a step as a page of the server.
    fields.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if status == StatusCode::PARTIAL_CONTENT {
        let shown = format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1));
        fields.insert(header::CONTENT_RANGE, HeaderValue::from_str(&shown).map_err(Problem::internal)?);
    }
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    /// The whole content is also sent for a header with several ranges or another unit, which a server may ignore.
    Whole,
    Part(Range<u64>),
    OutOfRange,
}

fn parse_range(text: &str, length: u64) -> RequestedRange {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return RequestedRange::Whole;
    };
    let number = |text: &str| parse_position(text.trim());
    let range = match (first.trim().is_empty(), last.trim().is_empty()) {
        (true, true) => return RequestedRange::Whole,
        (true, false) => number(last).map(|count| length.saturating_sub(count)..length),
        (false, true) => number(first).map(|first| first..length),
        (false, false) => {
            number(first).and_then(|first| number(last).map(|last| first..last.saturating_add(1).min(length)))
        }
    };
    match range {
        None => RequestedRange::Whole,
        Some(range) if range.start < range.end => RequestedRange::Part(range),
        Some(_) => RequestedRange::OutOfRange,
    }
}

/// Parses a position in a range: digits. One beyond 64 bits is beyond every content.
fn parse_position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        let cases = [
            ("bytes=0-3", RequestedRange::Part(0..4)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            ("bytes=8-99", RequestedRange::Part(8..10)),
            ("bytes=10-", RequestedRange::OutOfRange),
            ("bytes=5-3", RequestedRange::OutOfRange),
            ("bytes=-0", RequestedRange::OutOfRange),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("lines=0-1", RequestedRange::Whole),
            ("bytes=0-18446744073709551615", RequestedRange::Part(0..10)),
            ("bytes=0-99999999999999999999", RequestedRange::Part(0..10)),
            ("bytes=-99999999999999999999", RequestedRange::Part(0..10)),
            ("bytes=99999999999999999999-", RequestedRange::OutOfRange),
            ("bytes=+1-2", RequestedRange::Whole),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
        assert_eq!(parse_range("bytes=0-", 0), RequestedRange::OutOfRange);
    }
}
