//! Waits for executions and shows their progress meanwhile.

use crate::api::{Client, await_rest, follow, get_execution, get_status};
use crate::commands::counted;
use crate::commands::report::title;
use crate::progress::{Progress, TICK, say};
use anyhow::bail;
use crossbeam_channel::Receiver;
use reqwest::Method;
use serde_json::Value;
use std::io::{IsTerminal, Write, stderr};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};
use windlass_kernel::ExecutionId;
use windlass_views::{ExecutionStatus, execution_id};

/// Pause between two polls of an execution that changes all the time.
const PAUSE: Duration = Duration::from_millis(20);
/// Time without changes after which an execution may be quarantined.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Pause between two polls of the tasks that a paused execution waits for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of executions whose status is read at a time.
const STATUSES_MAX: usize = 64;

#[derive(Debug)]
pub enum Waited {
    /// The statuses of the executions, which have ended or wait for people.
    Rested(Vec<String>),
    /// The number of the signal.
    Interrupted(i32),
}

pub fn wait(
    client: &Rc<Client>,
    ids: &[ExecutionId],
    signals: &Receiver<i32>,
    is_quiet: bool,
) -> anyhow::Result<Waited> {
    match ids {
        [id] => wait_for_one(client, *id, signals, is_quiet),
        _ => wait_for_many(client, ids, signals, is_quiet),
    }
}

fn wait_for_one(
    client: &Rc<Client>,
    id: ExecutionId,
    signals: &Receiver<i32>,
    is_quiet: bool,
) -> anyhow::Result<Waited> {
    let follower = follow(client, id)?;
    let mut progress = match is_quiet {
        true => Progress::quiet(follower),
        false => {
            say(&title(&get_execution(client, id)?));
            Progress::new(follower, client.flag())
        }
    };
    let (mut cursor, mut news_at) = (None::<String>, Instant::now());
    let mut pause = Pause::default();
    loop {
        progress.tick()?;
        if let Some(status) = pause.rest_status(client, id, &progress)? {
            progress.end()?;
            return Ok(Waited::Rested(vec![status]));
        }
        if cursor.as_deref() != progress.cursor() {
            cursor = progress.cursor().map(str::to_owned);
            news_at = Instant::now();
        }
        if news_at.elapsed() > SILENCE_MAX {
            news_at = Instant::now();
            check_quarantine(&get_execution(client, id)?)?;
        }
        if let Ok(signal) = signals.try_recv() {
            progress.end()?;
            return Ok(Waited::Interrupted(signal));
        }
        thread::sleep(PAUSE);
    }
}

/// Waits for the executions one after the other, while all of them run.
fn wait_for_many(
    client: &Rc<Client>,
    ids: &[ExecutionId],
    signals: &Receiver<i32>,
    is_quiet: bool,
) -> anyhow::Result<Waited> {
    let mut counter = Counter { total: ids.len(), shown: None, is_quiet };
    let mut statuses: Vec<String> = Vec::with_capacity(ids.len());
    let mut news_at = Instant::now();
    while statuses.len() < ids.len() {
        let next = &ids[statuses.len()..ids.len().min(statuses.len() + STATUSES_MAX)];
        let before = statuses.len();
        let found = read_statuses(client, next)?;
        statuses.extend(found.iter().map_while(|status| rest_of_answer(status).map(str::to_owned)));
        counter.show(statuses.len());
        if let Ok(signal) = signals.try_recv() {
            counter.end(statuses.len());
            return Ok(Waited::Interrupted(signal));
        }
        if statuses.len() > before {
            news_at = Instant::now();
            continue;
        }
        if news_at.elapsed() > SILENCE_MAX {
            news_at = Instant::now();
            check_quarantine(&get_execution(client, ids[before])?)?;
        }
        // A paused execution that does not rest yet is answered at once.
        if await_rest(client, ids[before])?["status"] == "paused" {
            thread::sleep(TICK);
        }
    }
    counter.end(statuses.len());
    Ok(Waited::Rested(statuses))
}

fn read_statuses(client: &Client, ids: &[ExecutionId]) -> anyhow::Result<Vec<Value>> {
    let request =
        |id: &ExecutionId| client.request(Method::GET, &["executions", &execution_id(*id), "status"]);
    Ok(client.json_all(ids.iter().map(request).collect())?)
}

/// A pause of the execution that is waited for.
#[derive(Debug, Default)]
struct Pause {
    /// Position of the execution at the last poll, and the time of that poll.
    looked: Option<(String, Instant)>,
}

impl Pause {
    /// Returns the status of an execution that has ended or that only people can continue. The tasks of a paused one
    /// are read again, because a deadline of a sub-execution may have passed, which does not change this execution.
    fn rest_status(
        &mut self,
        client: &Client,
        id: ExecutionId,
        progress: &Progress,
    ) -> anyhow::Result<Option<String>> {
        let (state, cursor) = (progress.state(), progress.cursor().unwrap_or_default());
        if state.status.is_ended() {
            return Ok(Some(state.status.word().to_owned()));
        }
        let looked = self.looked.as_ref();
        let is_known = looked.is_some_and(|(known, at)| known == cursor && at.elapsed() < LOOK_AGAIN);
        if state.status != ExecutionStatus::Paused || state.held || is_known {
            return Ok(None);
        }
        self.looked = Some((cursor.to_owned(), Instant::now()));
        Ok(rest_of_answer(&get_status(client, id)?).map(str::to_owned))
    }
}

/// Returns the status of an execution that rests. A held one waits for its release, and one at a gate with a deadline
/// for the deadline. A question to a person may stay open for days: it is printed, and no deadline is awaited.
fn rest_of_answer(answer: &Value) -> Option<&str> {
    let moves = |waiting: &Value| {
        waiting["kind"] == "gate" && waiting["deadline"].is_string()
            || waiting["kind"] == "pause" && waiting["childId"].is_null()
    };
    let waits = || answer["waitingFor"].as_array().into_iter().flatten().any(moves);
    match answer["status"].as_str()? {
        status @ ("completed" | "partial_success" | "failed" | "cancelled") => Some(status),
        status @ "paused" if !waits() => Some(status),
        _ => None,
    }
}

fn check_quarantine(execution: &Value) -> anyhow::Result<()> {
    match execution["quarantined"]["reason"].as_str() {
        Some(reason) => bail!(
            "{} is quarantined: {reason}\n  hint: `windlass admin quarantine` releases or cancels it",
            execution["executionId"].as_str().unwrap_or_default()
        ),
        None => Ok(()),
    }
}

/// Progress of several executions: the number of them that rest.
struct Counter {
    total: usize,
    shown: Option<usize>,
    is_quiet: bool,
}

impl Counter {
    fn show(&mut self, rested: usize) {
        if !self.is_quiet && stderr().is_terminal() && self.shown != Some(rested) {
            self.shown = Some(rested);
            let _ = write!(stderr(), "\r{rested} of {}\x1b[K", counted(self.total, "execution"));
        }
    }

    fn end(self, rested: usize) {
        if self.is_quiet {
            return;
        }
        let clear = if stderr().is_terminal() { "\r\x1b[K" } else { "" };
        say(&format!("{clear}{rested} of {} ended or paused", counted(self.total, "execution")));
    }
}
