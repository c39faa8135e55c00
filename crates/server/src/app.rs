//! What every request has at hand.

use crate::auth::{Directory, Jwt};
use crate::limits::RateLimits;
use crate::problem::Problem;
use crate::readers::Readers;
use crate::settings::Settings;
use tokio::sync::{oneshot, watch};
use windlass_engine::{Answer, Handle, Request};

#[derive(Debug)]
pub struct App {
    pub engine: Handle,
    pub readers: Readers,
    pub settings: Settings,
    pub directory: Directory,
    pub jwt: Option<Jwt>,
    pub rates: RateLimits,
    stopping: watch::Sender<bool>,
}

impl App {
    #[must_use]
    pub fn new(
        engine: Handle,
        readers: Readers,
        settings: Settings,
        directory: Directory,
        jwt: Option<Jwt>,
    ) -> App {
        let (rates, stopping) = (RateLimits::default(), watch::channel(false).0);
        App { engine, readers, settings, directory, jwt, rates, stopping }
    }

    /// Asks the engine. The answer comes after everything it says is on disk.
    pub async fn ask(&self, request: Request) -> Result<Answer, Problem> {
        let (told, answer) = oneshot::channel();
        if !self.engine.try_ask(request, move |answer| drop(told.send(answer))) {
            return Err(Problem::unavailable("the engine has more to do than it can take; ask again"));
        }
        match answer.await {
            Ok(Answer::Stopping) | Err(_) => {
                Err(Problem::unavailable("the server is being stopped; ask again"))
            }
            Ok(answer) => Ok(answer),
        }
    }

    /// Requests are taken, and what the last process left is known.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.engine.is_recovered() && !*self.stopping.borrow()
    }

    /// From now on load balancers are told to send nothing more, and streams end.
    pub fn stops(&self) {
        self.stopping.send_replace(true);
    }

    /// Comes when the server is being stopped: whoever would wait longer ends then.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`, so there is no other answer.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}
