//! An execution at a server, followed from here.

use super::{Client, ServerError};
use anyhow::Context;
use std::rc::Rc;
use std::time::{Duration, Instant};
use windlass_kernel::{ExecutionId, NetSpec};
use windlass_server::trail::{Stretch, Trail};
use windlass_store::Position;
use windlass_views::execution_id;

/// The server waits so long for something to happen: a terminal is drawn anew as often.
const WAIT_MS: &str = "500";
/// A server that is started anew is back within this time.
const BACK_WITHIN: Duration = Duration::from_secs(15);
const AGAIN_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct ServerTrail {
    server: Rc<Client>,
    execution: String,
    /// The first look does not wait: it shows what there is.
    waits: bool,
    /// What came with the net.
    first: Option<Stretch>,
}

impl ServerTrail {
    pub fn new(server: Rc<Client>, execution: ExecutionId) -> ServerTrail {
        ServerTrail { server, execution: execution_id(execution), waits: false, first: None }
    }

    fn ask(&self, from: u64, after: Position) -> Result<String, ServerError> {
        let (from, after) = (from.to_string(), after.0.to_string());
        let wait = if self.waits { WAIT_MS } else { "0" };
        let query = [("from", from.as_str()), ("logsAfter", &after), ("waitMs", wait)];
        let asked = self.server.asked(reqwest::Method::GET, &["executions", &self.execution, "journal"]);
        self.server.text(asked.query(&query))
    }
}

impl Trail for ServerTrail {
    fn net(&mut self) -> anyhow::Result<Option<NetSpec>> {
        let mut first = self.next(0, Position(0))?;
        let net = first.net.take();
        self.first = Some(first);
        Ok(net)
    }

    fn next(&mut self, from: u64, after: Position) -> anyhow::Result<Stretch> {
        if let Some(first) = self.first.take_if(|_| from == 0) {
            return Ok(first);
        }
        let until = Instant::now() + BACK_WITHIN;
        let text = loop {
            match self.ask(from, after) {
                Ok(text) => break text,
                // Who has seen nothing yet is told at once.
                Err(error) if error.is_passing() && self.waits && Instant::now() < until => {
                    std::thread::sleep(AGAIN_AFTER);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let stretch: Stretch = serde_json::from_str(&text)
            .context("the server tells its journal in a way that is not known here")?;
        self.waits = !stretch.more;
        Ok(stretch)
    }
}
