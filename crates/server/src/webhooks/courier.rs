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
use windlass_worker::egress;

/// Feeds kept open for executions that nothing is done for at the moment; others are read anew.
const FEEDS_MAX: usize = 2_000;
/// Executions looked up at a time.
const PAGE: usize = 500;
/// Changes that come together are looked at together.
const GATHERED: Duration = Duration::from_millis(20);
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Without anything else the clock is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// After trouble of our own.
const TROUBLE: Duration = Duration::from_secs(1);

/// Tells events until the server stops.
pub async fn run(app: Arc<App>) {
    let settings = app.settings.egress.clone();
    let built = app.run_blocking(move || egress::client(settings, CONNECT_MAX)).await;
    let client = match built {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return tracing::error!(%error, "no webhooks: the client for them cannot be made"),
        Err(problem) => return tracing::error!(%problem, "no webhooks: the client for them cannot be made"),
    };
    let courier = Courier {
        client,
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
    client: reqwest::Client,
    /// Known and not worked on.
    routes: HashMap<ExecutionId, Route>,
    at_work: HashSet<ExecutionId>,
    /// Changed while they are worked on.
    again: HashSet<ExecutionId>,
    /// Changed, and not looked at yet: nobody else says so once more.
    unheard: BTreeSet<ExecutionId>,
    ready: Ready,
    due: BTreeSet<(Millis, ExecutionId)>,
    /// The newest execution that was looked at.
    newest: i64,
    /// There may be newer ones.
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
                    tracing::warn!(%problem, "executions with webhooks cannot be looked up");
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
                    // Its execution is found again after the next start, and its events are in the store.
                    Err(error) => tracing::error!(%error, "work on a webhook ended badly"),
                },
                () = tokio::time::sleep(pause) => {}
                () = app.stopped() => return,
            }
            self.wake_due();
        }
    }

    /// After an error it can be asked again: what was not looked at is still there.
    async fn hear(&mut self) -> Result<(), Problem> {
        while let Some(id) = self.unheard.first().copied() {
            if !self.routes.contains_key(&id) && !self.at_work.contains(&id) {
                // Everything was told, and somebody wants to hear it once more.
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

    /// Executions that have come since the last time.
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

    /// As many as may be.
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
        let (app, client) = (self.app.clone(), self.client.clone());
        self.jobs.spawn(async move {
            let state = route.advance(&app, &client).await;
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
