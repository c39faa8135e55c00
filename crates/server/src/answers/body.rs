//! The body of an answer: parts that are freed one by one as the connection takes them.

use super::HeldBytes;
use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

#[derive(Debug, Default)]
pub struct Parts {
    parts: VecDeque<Bytes>,
    left: u64,
}

/// A part, counted as long as anything of it is in memory.
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
    pub fn push(&mut self, bytes: Bytes, held: HeldBytes) {
        if !bytes.is_empty() {
            self.left += bytes.len() as u64;
            self.parts.push_back(Bytes::from_owner(Part { bytes, _held: held }));
        }
    }
}

impl Body for Parts {
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
