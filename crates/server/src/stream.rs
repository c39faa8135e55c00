//! A live subscriber of an execution: its position in the feed, and a notification when there is more.

use crate::answers::HeldBytes;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::feed::{Feed, FeedError, FeedPage};
use crate::hub::Follow;
use crate::problem::Problem;
use crate::routes::stored_of;
use crate::versions::code_places;
use std::sync::Arc;
use tokio::sync::futures::OwnedNotified;
use windlass_kernel::ExecutionId;

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
    /// Opens a subscription after the message `seen`; 0 is before the first.
    pub(crate) async fn open(
        app: &Arc<App>,
        caller: &Caller,
        id: ExecutionId,
        seen: u64,
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
                Ok::<_, Problem>(state.histories.feeds.open(id, net, code, seen))
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
