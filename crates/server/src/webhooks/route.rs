//! The delivery of one execution's events: from its feed into the outbox, and from there to the receiver.

use super::delivery::{DeliveryRequest, outcome};
use super::event::{Subject, WebhookEvent, body, event};
use super::signature::Secret;
use crate::app::App;
use crate::feed::{Audience, Feed, FeedError, FeedPage, FeedStart};
use crate::host::now;
use crate::problem::Problem;
use crate::versions::code_places;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::{
    Applied, DeliverySource, DeliveryState, Entry, NewDeliveries, NewDelivery, Outbox, Reader, StoredDelivery,
};
use windlass_views::{Message, canonical, workflow_id};

/// Number of deliveries read at a time.
const PAGE: usize = 16;
/// Pause after an error of the store or the vault.
const TROUBLE_MS: u64 = 1_000;

/// An execution with a webhook.
#[derive(Debug)]
pub(crate) struct Route {
    source: DeliverySource,
    /// Origin of the receiver, by which deliveries are limited.
    receiver: Arc<str>,
    /// None: the feed is opened when it is needed.
    feed: Option<Feed>,
    /// Starts that were sent: the feed may report them again.
    starts: BTreeSet<u64>,
    /// Whether the execution has ended and all its events are in the outbox.
    gathered: bool,
}

/// The state of a route after it was worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteState {
    /// Nothing to do until the execution changes.
    Waits,
    /// The next attempt is due at this time.
    Due(Millis),
    /// Every event is acknowledged or given up.
    Done,
}

impl Route {
    #[must_use]
    pub(crate) fn new(source: DeliverySource) -> Route {
        let url = reqwest::Url::parse(&source.webhook.url).ok();
        let receiver = url.map(|url| url.origin().ascii_serialization()).unwrap_or_default().into();
        Route { source, receiver, feed: None, starts: BTreeSet::new(), gathered: false }
    }

    #[must_use]
    pub(crate) fn execution(&self) -> ExecutionId {
        self.source.execution
    }

    #[must_use]
    pub(crate) fn receiver(&self) -> &Arc<str> {
        &self.receiver
    }

    /// Drops the feed, which can be opened again.
    pub(crate) fn shed(&mut self) {
        self.feed = None;
    }

    /// Sends what can be sent. An error of the server is logged, and the route is tried again soon.
    pub(crate) async fn advance(&mut self, app: &Arc<App>) -> RouteState {
        match self.deliver_pending(app).await {
            Ok(state) => state,
            Err(problem) => {
                tracing::warn!(execution = %self.source.execution, %problem, "cannot deliver events; retrying");
                // The feed may be ahead of the store.
                self.feed = None;
                RouteState::Due(now().plus(TROUBLE_MS))
            }
        }
    }

    async fn deliver_pending(&mut self, app: &Arc<App>) -> Result<RouteState, Problem> {
        if !self.gathered {
            self.gather(app).await?;
        }
        loop {
            let id = self.source.execution;
            let pending = app.followers.look(move |reader| reader.pending(id, PAGE)).await?;
            if pending.is_empty() {
                return self.find_next_attempt(app).await;
            }
            for waiting in &pending {
                if let Some(due) = waiting.due.filter(|due| *due > now()) {
                    return Ok(RouteState::Due(due));
                }
                if let Some(state) = self.deliver(app, waiting).await? {
                    return Ok(state);
                }
            }
        }
    }

    async fn find_next_attempt(&self, app: &App) -> Result<RouteState, Problem> {
        if !self.gathered {
            return Ok(RouteState::Waits);
        }
        let kept = app.store_entries(vec![Entry::OutboxClosed { execution: self.source.execution }]).await?;
        // A redelivery that was requested meanwhile is found by the next call.
        Ok(if kept[..] == [Applied::Done] { RouteState::Done } else { RouteState::Due(now()) })
    }

    /// Makes deliveries of the new messages, in their order.
    async fn gather(&mut self, app: &Arc<App>) -> Result<(), Problem> {
        loop {
            let page = self.page(app).await?;
            let made = self.new_deliveries(&page.messages);
            if let Some(seen) = page.messages.iter().map(|message| message.sequence).max() {
                self.source.seen = self.source.seen.max(seen);
            }
            if !made.is_empty() {
                self.store_deliveries(app, made).await?;
            }
            self.gathered = page.over;
            if page.over || !page.more {
                return Ok(());
            }
        }
    }

    async fn store_deliveries(&mut self, app: &App, made: Vec<NewDelivery>) -> Result<(), Problem> {
        let (execution, seen) = (self.source.execution, self.source.seen);
        let count = made.len() as u64;
        let new = NewDeliveries { execution, seen, made, at: now() };
        let kept = app.store_entries(vec![Entry::Deliveries(Box::new(new))]).await?;
        if kept[..] != [Applied::Done] {
            return Err(Problem::internal(format!("events of {execution} were numbered by another task")));
        }
        self.source.number += count;
        Ok(())
    }

    fn new_deliveries(&mut self, messages: &[Message]) -> Vec<NewDelivery> {
        let subject = Subject {
            execution: self.source.execution,
            workflow: self.source.workflow.map(|workflow| workflow_id(workflow.0)),
        };
        let mut made = Vec::new();
        for message in messages {
            let Some(event) = event(&message.body) else { continue };
            if !self.source.webhook.events.iter().any(|wanted| wanted == event.name()) {
                continue;
            }
            if event == WebhookEvent::NodeStarted && !self.starts.insert(message.sequence) {
                continue;
            }
            let number = self.source.number + made.len() as u64 + 1;
            let body = canonical(&body(event, number, &subject, message));
            made.push(NewDelivery {
                number,
                message: message.sequence,
                event: event.name().to_owned(),
                body,
            });
        }
        made
    }

    async fn page(&mut self, app: &Arc<App>) -> Result<FeedPage, Problem> {
        let mut feed = match self.feed.take() {
            Some(feed) => feed,
            None => self.open(app).await?,
        };
        let state = app.clone();
        let reading = app.followers.read(move |reader| {
            let page = feed.read(reader, &state.histories.feeds)?;
            Ok::<_, FeedError>((feed, page))
        });
        let (feed, page) = reading.await?;
        self.feed = Some(feed);
        Ok(page)
    }

    /// Opens the feed after the last message that was gathered.
    async fn open(&mut self, app: &Arc<App>) -> Result<Feed, Problem> {
        let (state, id) = (app.clone(), self.source.execution);
        let opened = app
            .readers
            .read(move |reader| {
                let gone = || Problem::internal(format!("execution {id} or its net is missing"));
                let source = reader.delivery_source(id)?.ok_or_else(gone)?;
                let stored = reader.load(id)?.ok_or_else(gone)?;
                let net = state.histories.net(reader, stored.state.head.net)?.ok_or_else(gone)?;
                let code = code_places(reader, &stored.origin)?;
                let starts = reader.delivered_messages(id, WebhookEvent::NodeStarted.name())?;
                Ok::<_, Problem>((
                    state.histories.feeds.open(
                        id,
                        net,
                        code,
                        FeedStart::After(source.seen),
                        Audience::Webhooks,
                    ),
                    source,
                    starts,
                ))
            })
            .await?;
        let (feed, source, starts) = opened;
        self.source = source;
        self.starts = starts.into_iter().collect();
        Ok(feed)
    }

    /// Sends a delivery. Returns None if it was accepted and the next one may be sent.
    async fn deliver(&self, app: &Arc<App>, waiting: &StoredDelivery) -> Result<Option<RouteState>, Problem> {
        let execution = self.source.execution;
        let secrets = self.secrets(app).await?;
        let letter = DeliveryRequest { url: &waiting.url, execution, delivery: &waiting.delivery };
        let answered = letter.send(&app.outbound.client().await?, &secrets, now()).await;
        let number = waiting.delivery.number;
        let tried = outcome(execution, number, waiting.attempts, &answered, (now(), random()?));
        let (state, due) = (tried.state, tried.due);
        let mut entries = vec![Entry::DeliveryAttempted(Box::new(tried))];
        if state == DeliveryState::GivenUp {
            tracing::warn!(%execution, number, url = %waiting.url, ?answered, "gave up a webhook delivery");
            entries.push(self.given_up(number));
        }
        app.store_entries(entries).await?;
        Ok(match state {
            DeliveryState::Delivered => None,
            DeliveryState::Pending => Some(RouteState::Due(due.unwrap_or_else(now))),
            // The next call finds no pending delivery.
            DeliveryState::GivenUp => Some(RouteState::Due(now())),
        })
    }

    /// Gives up all later deliveries, too: they are delivered in order.
    fn given_up(&self, number: u64) -> Entry {
        let why = format!("not sent: delivery {number} before it was given up");
        Entry::GivenUp { execution: self.source.execution, why, at: now() }
    }

    async fn secrets(&self, app: &Arc<App>) -> Result<Vec<Secret>, Problem> {
        let (state, tenant) = (app.clone(), self.source.tenant.clone());
        Ok(app.run_blocking(move || state.webhook_secrets.of(&tenant)).await??.at(now()))
    }
}

fn random() -> Result<u32, Problem> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| Problem::internal(format!("no random bytes: {error}")))?;
    Ok(u32::from_le_bytes(bytes))
}
