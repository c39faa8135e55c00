//! Starts steps that wait for a sandbox or a route group. Waiting steps and ready targets are rows: this module
//! compares them when either changes, and after a restart.
//!
//! | module | content |
//! |---|---|
//! | [`targets`] | the routes of clusters, sandboxes and route groups |
//! | [`poll`] | one request to the URL of a target |

mod poll;
pub(crate) mod targets;

use crate::app::App;
use crate::host::now;
use crate::hub::Listener;
use crate::passes::{BackgroundWork, PASS_EVERY, run_passes};
use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use targets::write_one;
use tokio::task::{JoinError, JoinSet};
use windlass_engine::{EngineAnswer, Refusal, Request};
use windlass_kernel::{Input, Rejected, RunState};
use windlass_store::{
    AwaitedRoute, Entry, Registry as _, RegistryWrite, RoutingTarget, TargetKind, TargetPoll, Tenant,
};

/// Number of waiting step-runs that are read at a time.
const PAGE: usize = 256;
/// Maximum number of targets whose state one pass caches; others are read again.
const REMEMBERED_MAX: usize = 10_000;
/// Requests to URLs of targets at a time.
const POLLS_MAX: usize = 16;
/// Requests to URLs of one tenant at a time: slow ones leave room for those of others.
const POLLS_OF_TENANT_MAX: usize = 4;
/// Time between two requests to the URL of one target.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// Age at which the result of a poll must be renewed before steps start.
const POLL_FRESH: Duration = Duration::from_secs(10);

/// A sandbox or route group of a tenant.
type TargetKey = (Tenant, TargetKind, String);

/// Starts steps whose target is ready, until the process stops.
pub(crate) async fn run(app: Arc<App>) {
    let router = Router { app: app.clone(), polls: JoinSet::new(), polled: BTreeSet::new() };
    run_passes(&app, router).await;
}

struct Router {
    app: Arc<App>,
    polls: JoinSet<TargetPoll>,
    /// Targets with an open request.
    polled: BTreeSet<TargetKey>,
}

/// Whether steps that wait for a target may start.
enum Readiness {
    Ready,
    NotReady,
    /// The time before which its URL must not be polled again.
    Unknown(Box<RoutingTarget>, Duration),
}

impl BackgroundWork for Router {
    const NOUN: &'static str = "steps that wait for a route";
    type Ended = Result<TargetPoll, JoinError>;

    /// Starts every step whose target is ready. Returns the time until a target must be polled.
    async fn look(&mut self) -> Result<Duration, Problem> {
        let (mut after, mut pause) = (None, PASS_EVERY);
        let mut known: BTreeMap<TargetKey, Readiness> = BTreeMap::new();
        loop {
            let page = self.app.followers.look(move |reader| reader.awaited_routes(after, PAGE)).await?;
            let Some(last) = page.last() else { return Ok(pause) };
            after = Some((last.execution, last.run));
            for route in page {
                let Some(key) = key_of(&route) else {
                    self.start(&route).await?;
                    continue;
                };
                if known.len() >= REMEMBERED_MAX {
                    known.clear();
                }
                if !known.contains_key(&key) {
                    known.insert(key.clone(), self.readiness(&key).await?);
                }
                match &known[&key] {
                    Readiness::Ready => self.start(&route).await?,
                    Readiness::NotReady => {}
                    Readiness::Unknown(target, wait) => {
                        pause = pause.min(self.poll(&key, target, *wait).await?);
                    }
                }
            }
        }
    }

    async fn next_change(&mut self) -> Option<Self::Ended> {
        tokio::select! {
            () = self.app.hub.changed_any(Listener::Router) => None,
            () = self.app.routing_bell.notified() => None,
            Some(polled) = self.polls.join_next() => Some(polled),
        }
    }

    /// Stores the result of a poll; the next pass reads it.
    async fn note(&mut self, polled: Self::Ended) {
        let Ok(polled) = polled else {
            // A request panicked; its target is not known.
            self.polled.clear();
            return;
        };
        self.polled.remove(&(polled.tenant.clone(), polled.kind, polled.name.clone()));
        let write = RegistryWrite::TargetPolled(Box::new(polled));
        if let Err(problem) = write_one(&self.app, Entry::Registry(Box::new(write))).await {
            tracing::warn!(%problem, "the result of a poll is not stored");
        }
    }
}

impl Router {
    async fn readiness(&self, key: &TargetKey) -> Result<Readiness, Problem> {
        let (tenant, kind, name) = key.clone();
        let found = self.app.followers.look(move |reader| reader.target(&tenant, kind, &name)).await?;
        Ok(match found {
            None => Readiness::NotReady,
            Some(target) => judge(target),
        })
    }

    /// Requests the URL of a target unless a request is open. Returns the time until the next one may be sent.
    async fn poll(
        &mut self,
        key: &TargetKey,
        target: &RoutingTarget,
        wait: Duration,
    ) -> Result<Duration, Problem> {
        let of_tenant = self.polled.iter().filter(|(tenant, ..)| *tenant == key.0).count();
        if !wait.is_zero() || self.polls.len() >= POLLS_MAX || of_tenant >= POLLS_OF_TENANT_MAX {
            return Ok(wait.max(POLL_EVERY));
        }
        let client = self.app.outbound.client().await?;
        if let Some(url) = target.ready_url.clone().filter(|_| self.polled.insert(key.clone())) {
            let target = target.clone();
            self.polls.spawn(async move { poll::poll(&client, &target, &url).await });
        }
        Ok(POLL_EVERY)
    }

    async fn start(&self, route: &AwaitedRoute) -> Result<(), Problem> {
        let input = Input::RouteReady { run: route.run };
        match self.app.ask(Request::Give { execution: route.execution, input, audit: None }).await? {
            // It timed out or was cancelled meanwhile.
            EngineAnswer::Accepted
            | EngineAnswer::Refused(Refusal::Rejected(Rejected::NotWaiting { .. })) => {}
            other => tracing::debug!(?other, execution = %route.execution, "a step was not started"),
        }
        Ok(())
    }
}

/// Returns the sandbox or route group that a step waits for; None if it waits for nothing that could become ready. A step
/// whose target is not one starts, and its worker reports what is wrong with the target.
fn key_of(route: &AwaitedRoute) -> Option<TargetKey> {
    let RunState::Waiting { target, .. } = &route.state.state else { return None };
    let target = windlass_protocol::RoutingTarget::read(target).ok()?;
    let sandbox = target.sandbox.map(|name| (TargetKind::Sandbox, name));
    let (kind, name) = sandbox.or_else(|| Some((TargetKind::RouteGroup, target.route_group?)))?;
    Some((route.tenant.clone(), kind, name))
}

fn judge(target: RoutingTarget) -> Readiness {
    if target.ready_url.is_none() {
        return if target.ready { Readiness::Ready } else { Readiness::NotReady };
    }
    let age = target.polled_at.map(|at| Duration::from_millis(now().since(at)));
    match age {
        Some(age) if target.ready && age < POLL_FRESH => Readiness::Ready,
        Some(age) => Readiness::Unknown(Box::new(target), POLL_EVERY.saturating_sub(age)),
        None => Readiness::Unknown(Box::new(target), Duration::ZERO),
    }
}
