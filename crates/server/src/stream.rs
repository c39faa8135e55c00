//! A live subscriber of an execution: its position in the feed, and a notification when there is more.

use crate::answers::HeldBytes;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::feed::{Audience, Feed, FeedError, FeedPage, FeedStart};
use crate::hub::Follow;
use crate::problem::Problem;
use crate::routes::stored_of;
use crate::versions::code_places;
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;
use windlass_kernel::ExecutionId;
use windlass_store::{Position, Reader};

/// The last message that a subscriber has: its number, or `now` for all messages so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastSequence {
    Number(u64),
    Now,
}

impl Default for LastSequence {
    fn default() -> LastSequence {
        LastSequence::Number(0)
    }
}

impl<'de> Deserialize<'de> for LastSequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LastSequence, D::Error> {
        struct LastSequenceVisitor;

        impl Visitor<'_> for LastSequenceVisitor {
            type Value = LastSequence;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the sequence of a message, or `now`")
            }

            fn visit_u64<E>(self, number: u64) -> Result<LastSequence, E> {
                Ok(LastSequence::Number(number))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LastSequence, E> {
                match text {
                    "now" => Ok(LastSequence::Now),
                    _ => text
                        .parse()
                        .map(LastSequence::Number)
                        .map_err(|_| E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(LastSequenceVisitor)
    }
}

#[derive(Debug)]
pub(crate) struct Live {
    app: Arc<App>,
    /// The subscriber, whose token may expire.
    pub caller: Caller,
    pub execution: ExecutionId,
    follow: Follow,
    /// None while it is being read.
    feed: Option<Feed>,
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Problem {
        Problem::internal(error)
    }
}

impl Live {
    /// Opens a subscription after the last message that the subscriber has.
    pub(crate) async fn open(
        app: &Arc<App>,
        caller: &Caller,
        id: ExecutionId,
        last: LastSequence,
        audience: Audience,
    ) -> Result<Live, Problem> {
        caller.may(Permission::View)?;
        let (state, reading) = (app.clone(), caller.clone());
        let feed = app
            .readers
            .of(&caller.tenant)
            .read(move |reader| {
                let stored = stored_of(reader, &reading, id)?;
                let net = state.histories.net(reader, stored.state.head.net)?;
                let net = net.ok_or_else(|| Problem::internal(format!("the net of {id} is missing")))?;
                let code = code_places(reader, &stored.origin)?;
                let start = match last {
                    LastSequence::Number(seen) => FeedStart::After(seen),
                    LastSequence::Now => {
                        let newest = reader.logs_before(id, Position(i64::MAX), 1)?;
                        let logs = newest.first().map_or(Position(0), |chunk| chunk.position);
                        FeedStart::At { version: stored.state.head.version, logs }
                    }
                };
                Ok::<_, Problem>(state.histories.feeds.open(id, net, code, start, audience))
            })
            .await?;
        let caller = caller.clone();
        Ok(Live { app: app.clone(), caller, execution: id, follow: app.hub.follow(id), feed: Some(feed) })
    }

    /// Completes when the subscriber may no longer read.
    pub(crate) async fn wait_for_expiry(&self) -> Problem {
        self.caller.wait_for_expiry(&self.app).await
    }

    /// Completes after the next change. Call it, then read, then wait.
    pub(crate) fn bell(&self) -> OwnedNotified {
        self.follow.next()
    }

    /// Reads the next page, unless the token has expired. The page counts among the responses of the tenant until it is
    /// sent; if there are too many of them, it waits.
    pub(crate) async fn read(&mut self) -> Result<(FeedPage, Arc<HeldBytes>), Problem> {
        let (app, tenant) = (self.app.clone(), self.caller.tenant.clone());
        tokio::select! {
            () = app.answers.room(&tenant) => {}
            problem = self.wait_for_expiry() => return Err(problem),
            () = app.stopped() => return Err(Problem::unavailable("the server is being stopped; retry later")),
        }
        self.caller.check_credential(&self.app)?;
        let Some(mut feed) = self.feed.take() else {
            return Err(Problem::internal("a feed is read by two tasks"));
        };
        let followers = self.app.followers.of(&self.caller.tenant);
        let reading = followers.read(move |reader| {
            let page = feed.read(reader, &app.histories.feeds)?;
            let held = Arc::new(app.answers.hold(&tenant, page.bytes));
            Ok::<_, FeedError>((feed, page, held))
        });
        let (feed, page, held) = reading.await?;
        self.feed = Some(feed);
        Ok((page, held))
    }
}

impl Drop for Live {
    /// Checks that the position of a subscriber is stored, so that it continues there when it reconnects.
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            self.app.histories.feeds.store_checkpoint(feed);
        }
    }
}
