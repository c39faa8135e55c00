//! Batches of calls whose order matters, bounded by their number and their bytes.

use std::io;
use tokio::sync::mpsc;
use windlass_protocol::{CALLS_PER_BATCH_MAX, Call, ReplyTo};

/// Bytes of the calls of one request; only a single call may be larger. Many proxies refuse requests beyond 1 MiB, and a
/// failed request is sent again as a whole.
const BATCH_BYTES_MAX: usize = 512 << 10;

/// Calls that are not sent yet.
pub(super) struct CallQueue {
    received: mpsc::UnboundedReceiver<(Call, ReplyTo)>,
    /// A call that did not fit into the last batch, and its bytes.
    next: Option<(Call, ReplyTo, usize)>,
}

impl CallQueue {
    pub(super) fn new(received: mpsc::UnboundedReceiver<(Call, ReplyTo)>) -> CallQueue {
        CallQueue { received, next: None }
    }

    /// Waits for a call, and returns it with those that follow it and fit into its request. Returns None when no further call
    /// can come.
    pub(super) async fn next_batch(&mut self) -> Option<(Vec<Call>, Vec<ReplyTo>)> {
        let (first, reply, mut bytes) = match self.next.take() {
            Some(next) => next,
            None => self.received.recv().await.map(with_bytes)?,
        };
        let (mut calls, mut replies) = (vec![first], vec![reply]);
        while calls.len() < CALLS_PER_BATCH_MAX
            && let Ok(next) = self.received.try_recv()
        {
            let (call, reply, length) = with_bytes(next);
            bytes += length;
            if bytes > BATCH_BYTES_MAX {
                self.next = Some((call, reply, length));
                break;
            }
            calls.push(call);
            replies.push(reply);
        }
        Some((calls, replies))
    }
}

fn with_bytes((call, reply): (Call, ReplyTo)) -> (Call, ReplyTo, usize) {
    let mut bytes = ByteCount(0);
    // A call that cannot be written fails when it is sent.
    let _ = serde_json::to_writer(&mut bytes, &call);
    (call, reply, bytes.0)
}

struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_protocol::{Outcome, Report, SessionId, Unit};

    fn report(number: u64, bytes: usize) -> Call {
        let unit = Unit { execution: 1, run: number, fence: number };
        let outcome = Outcome::Done { output: json!("x".repeat(bytes)) };
        Call::Report(Box::new(Report {
            unit,
            outcome,
            patch: Default::default(),
            metadata: Default::default(),
        }))
    }

    /// Returns the sizes of the batches that these calls are sent in.
    async fn batches(calls: Vec<Call>) -> Vec<usize> {
        let (sender, received) = mpsc::unbounded_channel();
        for call in &calls {
            let reply: ReplyTo = Box::new(|_| ());
            assert!(sender.send((call.clone(), reply)).is_ok());
        }
        drop(sender);
        let (mut queue, mut sizes, mut sent) = (CallQueue::new(received), Vec::new(), Vec::new());
        while let Some((batch, replies)) = queue.next_batch().await {
            assert_eq!(batch.len(), replies.len());
            sizes.push(batch.len());
            sent.extend(batch);
        }
        assert_eq!(sent, calls, "in their order, and each once");
        sizes
    }

    #[tokio::test]
    async fn a_batch_has_bounded_bytes_and_a_larger_call_is_sent_alone() {
        let third = BATCH_BYTES_MAX / 3;
        let calls = [third, third, third, 10, 2 * BATCH_BYTES_MAX, 10, 10];
        let calls = calls.into_iter().zip(1..).map(|(bytes, number)| report(number, bytes)).collect();
        assert_eq!(batches(calls).await, [2, 2, 1, 2]);
    }

    #[tokio::test]
    async fn a_batch_has_a_bounded_number_of_calls() {
        let leave = Call::Leave(SessionId(1));
        let calls = vec![leave; 2 * CALLS_PER_BATCH_MAX + 1];
        assert_eq!(batches(calls).await, [CALLS_PER_BATCH_MAX, CALLS_PER_BATCH_MAX, 1]);
    }
}
