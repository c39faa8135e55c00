//! The body of a response, handed to the connection in small parts, so that the progress of the client is known.

use super::activity::Exchange;
use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bytes of one part. An HTTP/2 client that grants a window of one byte gets only one part into the connection's
/// buffer.
const PART: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct TimedBody {
    body: Body,
    rest: Bytes,
    exchange: Exchange,
}

impl TimedBody {
    pub(crate) fn new(body: Body, mut exchange: Exchange) -> TimedBody {
        exchange.answers(body.size_hint().exact().is_some());
        TimedBody { body, rest: Bytes::new(), exchange }
    }
}

impl hyper::body::Body for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            if polled.is_pending() {
                self.exchange.waits();
            }
            match ready!(polled).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        self.exchange.sends();
        let length = self.rest.len().min(PART);
        let part = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
