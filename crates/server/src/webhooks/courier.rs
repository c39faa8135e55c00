//! Finds executions with events to deliver, and works on a bounded number of them at a time. Its state is in the store, so
//! it continues after a crash.

use super::ready::Ready;
use super::route::{Route, RouteState};
use crate::app::App;
use crate::host::now;
use crate::problem::Problem;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_kernel::{ExecutionId, Millis};
use windlass_store::Outbox;

/// Maximum number of open feeds of idle executions; others are opened again when needed.
const FEEDS_MAX: usize = 2_000;
/// Number of executions read at a time.
const PAGE: usize = 500;
/// Time in which changes are collected before they are handled.
const GATHERED: Duration = Duration::from_millis(20);
/// Maximum time between two checks for due deliveries.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Pause after an error of the server.
const TROUBLE: Duration = Duration::from_secs(1);

/// Delivers events until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    let courier = Courier {
        routes: HashMap::new(),
        at_work: HashSet::new(),
        again: HashSet::new(),
        unheard: BTreeSet::new(),
        ready: Ready::default(),
        due: BTreeSet::new(),
        newest: 0,
        looks: true,
        jobs: JoinSet::new(),
        app,
    };
    courier.run().await;
}

struct Courier {
    app: Arc<App>,
    /// Routes that are not in progress.
    routes: HashMap<ExecutionId, Route>,
    at_work: HashSet<ExecutionId>,
    /// Executions that changed while in progress.
    again: HashSet<ExecutionId>,
    /// Changed executions that are not handled yet. Their notifications are not repeated.
    unheard: BTreeSet<ExecutionId>,
    ready: Ready,
    due: BTreeSet<(Millis, ExecutionId)>,
    /// Position of the newest execution that was read.
    newest: i64,
    /// Whether newer executions may exist.
    looks: bool,
    jobs: JoinSet<(Route, RouteState)>,
}

impl Courier {
    async fn run(mut self) {
        let app = self.app.clone();
        loop {
            let pause = match self.hear().await {
                Ok(()) => self.pause(),
                Err(problem) => {
                    tracing::warn!(%problem, "cannot read executions with webhooks; retrying");
                    TROUBLE
                }
            };
            self.begin();
            tokio::select! {
                heard = app.hub.anything() => {
                    tokio::time::sleep(GATHERED).await;
                    self.unheard.extend(heard);
                    self.looks = true;
                }
                Some(done) = self.jobs.join_next() => match done {
                    Ok((route, state)) => self.settle(route, state),
                    // The next start of the server finds the execution again; its events are in the store.
                    Err(error) => tracing::error!(%error, "the task of a webhook failed"),
                },
                () = tokio::time::sleep(pause) => {}
                () = app.stopped() => return,
            }
            self.wake_due();
        }
    }

    /// Handles notifications. After an error it can be called again.
    async fn hear(&mut self) -> Result<(), Problem> {
        while let Some(id) = self.unheard.first().copied() {
            if !self.routes.contains_key(&id) && !self.at_work.contains(&id) {
                // All events were delivered, and a redelivery was requested.
                let source = self.app.followers.look(move |reader| reader.delivery_source(id)).await?;
                self.routes.extend(source.map(|source| (id, Route::new(source))));
            }
            self.wake(id);
            self.unheard.remove(&id);
        }
        if self.looks {
            self.find().await?;
            self.looks = false;
        }
        Ok(())
    }

    /// Reads executions that were created since the last call.
    async fn find(&mut self) -> Result<(), Problem> {
        loop {
            let after = self.newest;
            let found = self.app.followers.look(move |reader| reader.delivery_sources(after, PAGE)).await?;
            let last = found.len() < PAGE;
            for source in found {
                self.newest = source.place;
                let id = source.execution;
                self.routes.insert(id, Route::new(source));
                self.app.hub.mark(id);
                self.wake(id);
            }
            if last {
                return Ok(());
            }
        }
    }

    fn wake(&mut self, id: ExecutionId) {
        if self.at_work.contains(&id) {
            self.again.insert(id);
        } else if let Some(route) = self.routes.get(&id) {
            self.ready.push(id, route.receiver());
        }
    }

    fn wake_due(&mut self) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now()
        {
            self.due.pop_first();
            self.wake(id);
        }
    }

    fn pause(&self) -> Duration {
        let next = self.due.first().map(|(at, _)| Duration::from_millis(at.since(now())));
        next.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
    }

    /// Starts as many routes as the limits permit.
    fn begin(&mut self) {
        while let Some((id, receiver)) = self.ready.next() {
            match self.routes.remove(&id) {
                Some(route) => self.spawn(id, route),
                None => self.ready.done(&receiver),
            }
        }
    }

    fn spawn(&mut self, id: ExecutionId, mut route: Route) {
        self.at_work.insert(id);
        let app = self.app.clone();
        self.jobs.spawn(async move {
            let state = route.advance(&app).await;
            (route, state)
        });
    }

    fn settle(&mut self, mut route: Route, state: RouteState) {
        let id = route.execution();
        self.at_work.remove(&id);
        self.ready.done(route.receiver());
        let changed = self.again.remove(&id);
        if state == RouteState::Done && !changed {
            return self.app.hub.unmark(id);
        }
        if self.routes.len() >= FEEDS_MAX {
            route.shed();
        }
        self.routes.insert(id, route);
        if let RouteState::Due(at) = state {
            self.due.insert((at, id));
        }
        if changed {
            self.wake(id);
        }
    }
}
