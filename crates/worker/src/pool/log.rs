//! Log lines of one unit for the engine: collected into chunks, and delayed when the engine is slow.

use crate::claim::Claim;
use crate::excerpt::settle;
use crate::halt::Halt;
use crate::keeper::Keeper;
use crate::stream::LINE_MAX;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout_at};
use windlass_protocol::{Call, Level, Line, Log, Stream, Work};

/// Maximum text of one chunk.
pub const CHUNK_MAX: usize = 64 * 1024;

/// Maximum time that a line waits for others in its chunk.
const GATHER: Duration = Duration::from_millis(100);

/// Maximum number of chunks without an answer: enough to keep a disk busy, few enough for every slot.
const UNANSWERED_MAX: usize = 4;

/// Maximum size of the data of a line; longer data is left out.
const DATA_MAX: usize = 16 * 1024;

/// Maximum text of the whole log of an attempt: a program that writes endlessly must not fill the disk.
const LOG_MAX: usize = 64 * 1024 * 1024;

/// Overhead of a line beyond its text.
const LINE_COST: usize = 32;

/// Number of reads that wait to be collected into a chunk.
const QUEUE: usize = 4;

/// Maximum wait of stopped work for an engine that accepts no more log lines.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Channel of log lines for tools. Sending waits while the engine is slow.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    sender: mpsc::Sender<Vec<Line>>,
    keeper: Arc<Keeper>,
    debug: bool,
}

impl Lines {
    pub(crate) async fn send(&self, stream: Stream, mut texts: Vec<String>) {
        let redactor = self.keeper.redactor();
        texts.iter_mut().for_each(|text| settle(&redactor, text));
        self.pass(stream, texts).await;
    }

    /// Sends lines of output that was redacted before it was split into lines.
    pub(crate) async fn pass(&self, stream: Stream, texts: Vec<String>) {
        if texts.is_empty() {
            return;
        }
        let at = now_ms();
        let lines =
            texts.into_iter().map(|text| Line { at, stream, text, level: None, data: None }).collect();
        // The receiver lives as long as the unit.
        let _ = self.sender.send(lines).await;
    }

    /// Sends a line of a node's logger. Debug lines are stored for executions with debug output.
    pub(crate) async fn say(&self, level: Level, text: &str, data: Option<Value>) {
        if level == Level::Debug && !self.debug {
            return;
        }
        let redactor = self.keeper.redactor();
        let mut text = text.to_owned();
        settle(&redactor, &mut text);
        let text = cut(&text).into_owned();
        let mut data = data.filter(|data| !data.is_null());
        if let Some(given) = &mut data
            && given.to_string().len() > DATA_MAX
        {
            *given = json!({ "omitted": format!("data of a line has at most {DATA_MAX} bytes") });
        }
        data.iter_mut().for_each(|data| redactor.value(data));
        let stream = Stream::Worker;
        let line = Line { at: now_ms(), stream, text, level: Some(level), data: data.map(Arc::new) };
        let _ = self.sender.send(vec![line]).await;
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().find(|(at, letter)| at + letter.len_utf8() > LINE_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) struct Pump {
    claim: Claim,
    lines: mpsc::Receiver<Vec<Line>>,
    room: Arc<Semaphore>,
    /// A chunk without its lines.
    head: Log,
    halt: Halt,
    /// Whether the work was stopped, and the engine accepted no more lines in time.
    is_deaf: bool,
    ends: Ends,
}

/// Reason for which the log of an attempt ends before the attempt.
struct Ends {
    sent: usize,
    /// Whether a last line states the reason.
    is_noted: bool,
}

impl Ends {
    /// Drops lines beyond the limit. The first ones are replaced by a line with the reason.
    fn admit(&mut self, lines: Vec<Line>, bytes: usize) -> Vec<Line> {
        if self.sent + bytes <= LOG_MAX {
            self.sent += bytes;
            return lines;
        }
        if std::mem::replace(&mut self.is_noted, true) {
            return Vec::new();
        }
        let limit = LOG_MAX / (1024 * 1024);
        vec![Line::end_of_log(now_ms(), &format!("the log of an attempt has at most {limit} MiB"))]
    }
}

pub(crate) fn log(claim: Claim, keeper: Arc<Keeper>, work: &Work, halt: Halt) -> (Lines, Pump) {
    let (sender, lines) = mpsc::channel(QUEUE);
    let head = Log { unit: work.unit, step: work.step.clone(), attempt: work.attempt, lines: Vec::new() };
    let room = Arc::new(Semaphore::new(UNANSWERED_MAX));
    let ends = Ends { sent: 0, is_noted: false };
    (
        Lines { sender, keeper, debug: work.debug },
        Pump { claim, lines, room, head, halt, is_deaf: false, ends },
    )
}

impl Pump {
    /// Runs until every sender is dropped and everything is sent.
    pub(super) async fn run(mut self) {
        let mut chunk = Chunk::default();
        while let Some(lines) = self.lines.recv().await {
            self.add(lines, &mut chunk).await;
            let until = Instant::now() + GATHER;
            while let Ok(Some(lines)) = timeout_at(until, self.lines.recv()).await {
                self.add(lines, &mut chunk).await;
            }
            self.send(&mut chunk).await;
        }
    }

    async fn add(&mut self, lines: Vec<Line>, chunk: &mut Chunk) {
        for line in lines {
            let data = line.data.as_ref().map_or(0, |data| data.to_string().len());
            let cost = line.text.len() + data + LINE_COST;
            if chunk.bytes + cost > CHUNK_MAX {
                self.send(chunk).await;
            }
            chunk.bytes += cost;
            chunk.lines.push(line);
        }
    }

    async fn send(&mut self, chunk: &mut Chunk) {
        let Chunk { lines, bytes } = std::mem::take(chunk);
        let lines = self.ends.admit(lines, bytes);
        if lines.is_empty() {
            return;
        }
        // Lines for an engine that does not answer are dropped, so that their writer can end.
        if let Some(room) = self.room().await {
            let log = Log { lines, ..self.head.clone() };
            let mut room = Some(room);
            (self.claim.port)(Call::Log(log), Box::new(move |_| drop(room.take())));
        }
    }

    async fn room(&mut self) -> Option<OwnedSemaphorePermit> {
        if self.is_deaf {
            return None;
        }
        let room = Arc::clone(&self.room).acquire_owned();
        tokio::select! {
            biased;
            room = room => room.ok(),
            () = stopped(&mut self.halt) => {
                self.is_deaf = true;
                None
            }
        }
    }
}

async fn stopped(halt: &mut Halt) {
    if !halt.is_requested() {
        halt.requested().await;
    }
    sleep(LAST_WORDS).await;
}

#[derive(Default)]
struct Chunk {
    lines: Vec<Line>,
    bytes: usize,
}
