//! The journal of an execution, read through the API as it grows.

use super::{ApiError, Client};
use anyhow::Context;
use std::rc::Rc;
use std::time::{Duration, Instant};
use windlass_kernel::{ExecutionId, NetSpec};
use windlass_server::trail::Stretch;
use windlass_store::Position;
use windlass_views::execution_id;

/// Maximum time for which one request waits for news. A terminal is redrawn as often.
const WAIT_MS: &str = "100";
const REMOTE_WAIT_MS: &str = "500";
/// Maximum time for a server to come back after a restart.
const BACK_WITHIN: Duration = Duration::from_secs(15);
const RETRY_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct ApiJournal {
    client: Rc<Client>,
    execution: String,
    /// False for the first request, which returns the existing records.
    waits: bool,
    /// Records that came with the net.
    first: Option<Stretch>,
}

impl ApiJournal {
    pub fn new(client: Rc<Client>, execution: ExecutionId) -> ApiJournal {
        ApiJournal { client, execution: execution_id(execution), waits: false, first: None }
    }

    /// Returns the net; None when there is no such execution.
    pub fn net(&mut self) -> anyhow::Result<Option<NetSpec>> {
        let mut first = self.next(0, Position(0))?;
        let net = first.net.take();
        self.first = Some(first);
        Ok(net)
    }

    /// Returns the records after a number of records, and the log after a position. The server may wait for them.
    pub fn next(&mut self, from: u64, after: Position) -> anyhow::Result<Stretch> {
        if let Some(first) = self.first.take_if(|_| from == 0) {
            return Ok(first);
        }
        let until = Instant::now() + BACK_WITHIN;
        let text = loop {
            match self.request(from, after) {
                Ok(text) => break text,
                // A failure of the first request is reported at once.
                Err(error) if error.is_passing() && self.waits && Instant::now() < until => {
                    std::thread::sleep(RETRY_AFTER);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let stretch: Stretch = serde_json::from_str(&text)
            .context("the server sends its journal in a format that this version does not know")?;
        self.waits = !stretch.more;
        Ok(stretch)
    }

    fn request(&self, from: u64, after: Position) -> Result<String, ApiError> {
        let (from, after) = (from.to_string(), after.0.to_string());
        let wait = match (self.waits, self.client.is_remote()) {
            (false, _) => "0",
            (true, false) => WAIT_MS,
            (true, true) => REMOTE_WAIT_MS,
        };
        let query = [("from", from.as_str()), ("logsAfter", &after), ("waitMs", wait)];
        let request = self.client.request(reqwest::Method::GET, &["executions", &self.execution, "journal"]);
        self.client.text(request.query(&query))
    }
}
