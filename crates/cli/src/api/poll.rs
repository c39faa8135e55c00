//! Lists that grow, read page by page. The server waits for more when everything is read.

use super::{ApiError, Client};
use anyhow::Context;
use reqwest::Method;
use serde_json::Value;
use std::rc::Rc;
use std::time::{Duration, Instant};
use windlass_kernel::ExecutionId;
use windlass_views::{ProgressPage, execution_id};

/// Maximum time for which one request waits for news. A terminal is redrawn as often.
const WAIT_MS: &str = "100";
const REMOTE_WAIT_MS: &str = "500";
/// Maximum time for a server to come back after a restart.
const BACK_WITHIN: Duration = Duration::from_secs(15);
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Events on one page: the maximum of a server.
const EVENTS: &str = "1000";

/// Returns the time for which one request waits.
pub(super) fn wait_ms(client: &Client) -> &'static str {
    if client.is_remote() { REMOTE_WAIT_MS } else { WAIT_MS }
}

/// Requests for the pages of one list.
#[derive(Debug)]
struct Poll {
    client: Rc<Client>,
    path: Vec<String>,
    /// Further parameters.
    query: Vec<(&'static str, &'static str)>,
    /// Cursor of the next page; None before the first.
    cursor: Option<String>,
    /// Whether the server may wait: everything that existed at the last request was read.
    waits: bool,
}

impl Poll {
    fn of_execution(client: Rc<Client>, execution: ExecutionId, list: &str) -> Poll {
        let path = ["executions", &execution_id(execution), list].map(str::to_owned).into();
        Poll { client, path, query: Vec::new(), cursor: None, waits: false }
    }

    /// Requests the next page. After the first one, a server that restarts is awaited.
    fn next_page(&self, follows: bool) -> Result<String, ApiError> {
        let until = Instant::now() + BACK_WITHIN;
        loop {
            match self.request(follows) {
                // A failure of the first request is reported at once.
                Err(error) if error.is_passing() && self.cursor.is_some() && Instant::now() < until => {
                    std::thread::sleep(RETRY_AFTER);
                }
                answer => return answer,
            }
        }
    }

    fn request(&self, follows: bool) -> Result<String, ApiError> {
        let wait = if self.waits { wait_ms(&self.client) } else { "0" };
        let mut query = self.query.clone();
        query.extend(follows.then_some(("waitMs", wait)));
        let mut query: Vec<(&str, &str)> = query;
        query.extend(self.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.client.text(self.client.request(Method::GET, &path).query(&query))
    }
}

/// The progress of an execution.
#[derive(Debug)]
pub struct ApiProgress {
    poll: Poll,
}

impl ApiProgress {
    pub fn new(client: Rc<Client>, execution: ExecutionId) -> ApiProgress {
        ApiProgress { poll: Poll::of_execution(client, execution, "progress") }
    }

    /// Returns the position after the pages that were read. It changes with every change of the execution.
    pub fn cursor(&self) -> Option<&str> {
        self.poll.cursor.as_deref()
    }

    /// Returns the next page. The server may wait for it.
    pub fn next_page(&mut self) -> anyhow::Result<ProgressPage> {
        let page: ProgressPage = serde_json::from_str(&self.poll.next_page(true)?)
            .context("the server sends its progress in a format that this version does not know")?;
        self.poll.waits = page.state.is_some();
        self.poll.cursor = Some(page.cursor.clone());
        Ok(page)
    }
}

/// The public events of an execution.
#[derive(Debug)]
pub struct ApiEvents {
    poll: Poll,
    follows: bool,
    is_over: bool,
}

impl ApiEvents {
    /// `follows` means that events are awaited until the execution has ended.
    pub fn new(client: Rc<Client>, execution: ExecutionId, follows: bool) -> ApiEvents {
        let poll = Poll { query: vec![("limit", EVENTS)], ..Poll::of_execution(client, execution, "events") };
        ApiEvents { poll, follows, is_over: false }
    }

    /// Returns whether every page was read, and the server waits for more.
    pub fn waits(&self) -> bool {
        self.poll.waits && !self.is_over
    }

    /// Returns the next page; None after the last one.
    pub fn next_page(&mut self) -> anyhow::Result<Option<Vec<Value>>> {
        if self.is_over {
            return Ok(None);
        }
        let mut page: Value =
            serde_json::from_str(&self.poll.next_page(self.follows)?).context("the answer is not JSON")?;
        let pagination = &page["pagination"];
        self.poll.waits = pagination["hasMore"] == false;
        self.poll.cursor = pagination["cursor"].as_str().map(str::to_owned);
        self.is_over = self.poll.cursor.is_none();
        Ok(Some(page["events"].as_array_mut().map(std::mem::take).unwrap_or_default()))
    }
}
