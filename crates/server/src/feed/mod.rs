//! What happens to an execution, told as the messages of the workflow document. Streams and webhooks read the same feed:
//! a function of the durable journal, the logs and the leases, so that whoever comes late or comes again misses nothing.

mod message;
mod reading;
mod telling;
#[cfg(test)]
mod tests;

pub(crate) use message::attempt_error;
pub use message::{Message, Tells};
pub use reading::{Feed, FeedError, Page, leases};
pub use telling::Telling;
