//! Keeps the write-ahead log short. A thread of its own copies it into the database, which takes long, while the writer
//! continues. But the log can restart only when nothing in it is left to copy, and under load something always is. So
//! the writer copies the small rest itself, between two batches.

use super::connect;
use crate::store::{StoreError, StoreResult};
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Lengths of the log, in pages of 4 KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Length from which on the log is copied. Pages that are written repeatedly are copied once, so a longer log is less
    /// work; but each copy takes longer, and all commits wait for it: with 32 MiB one in twenty executions waited 30 ms,
    /// with 8 MiB the waits are below 10 ms.
    pub(super) start: i64,
    /// Maximum number of pages that are left to the writer.
    pub(super) rest: i64,
    /// Length from which on the writer copies all that is left, because the thread is too slow.
    pub(super) soft: i64,
    /// Length from which on the writer waits longer for readers. A reader that sees an old state for minutes (a copy of the
    /// whole store) keeps the log from restarting; then the log grows, and writing continues.
    pub(super) long: i64,
}

/// Maximum time for which the writer waits for readers when it copies the rest. Most readers take less time.
const READERS_WAIT: Duration = Duration::from_millis(5);

const READERS_WAIT_LONG: Duration = Duration::from_millis(100);

/// 8 MiB, 1 MiB, 16 MiB and 256 MiB.
pub(super) const BOUNDS: Bounds = Bounds { start: 2 * 1024, rest: 256, soft: 4 * 1024, long: 64 * 1024 };

#[derive(Debug)]
pub(super) struct Checkpoints {
    bounds: Bounds,
    wake: Option<SyncSender<()>>,
    done: Receiver<StoreResult<()>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread is copying.
    running: bool,
    /// Length of the log when the writer last tried to restart it.
    tried_at: i64,
    /// Number of writes since the length of the log was read.
    unread: usize,
}

/// Number of writes after which the length of the log is read again. SQLite prepares the pragma that reads it again each
/// time, which costs a tenth of a small commit; a few small commits do not make the log long.
const READ_EVERY: usize = 8;

/// Pages in the log, and the number of copied ones.
#[derive(Debug, Clone, Copy)]
struct Log {
    /// Negative when another process is copying.
    pages: i64,
    copied: i64,
}

impl Checkpoints {
    pub(super) fn start(path: &Path, bounds: Bounds) -> StoreResult<Checkpoints> {
        let conn = connect::open_writer(path)?;
        let (wake, woken) = sync_channel::<()>(1);
        let (report, done) = sync_channel(1);
        let thread = thread::Builder::new().name("checkpoints".into()).spawn(move || {
            while woken.recv().is_ok() {
                if report.send(copy(&conn, "PASSIVE").map(drop)).is_err() {
                    return;
                }
            }
        });
        let thread = thread.map_err(|error| {
            StoreError::Io(format!("the thread that copies the write-ahead log cannot be started: {error}"))
        })?;
        let (wake, thread) = (Some(wake), Some(thread));
        Ok(Checkpoints { bounds, wake, done, thread, running: false, tried_at: 0, unread: 0 })
    }

    /// Keeps the log within its bounds. Called before a batch of so many writes; returns an error of the thread.
    pub(super) fn keep_short(&mut self, conn: &Connection, writes: usize) -> StoreResult<()> {
        self.check_thread()?;
        self.unread += writes;
        if self.unread < READ_EVERY {
            return Ok(());
        }
        self.unread = 0;
        let Bounds { start, rest, soft, long } = self.bounds;
        let log = copy(conn, "NOOP")?;
        if log.pages < start {
            self.tried_at = 0;
            return Ok(());
        }
        if self.running {
            return Ok(());
        }
        if log.pages - log.copied > rest && log.pages < soft {
            return self.wake();
        }
        // The writer does not wait for a slow reader before every batch; the longer the log, the less often.
        if self.tried_at == 0 || log.pages - self.tried_at >= rest.max(log.pages / 8) {
            self.tried_at = log.pages;
            restart_log(conn, if log.pages < long { READERS_WAIT } else { READERS_WAIT_LONG })?;
        }
        Ok(())
    }

    fn check_thread(&mut self) -> StoreResult<()> {
        if !self.running {
            return Ok(());
        }
        match self.done.try_recv() {
            Ok(result) => {
                self.running = false;
                result
            }
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(gone()),
        }
    }

    fn wake(&mut self) -> StoreResult<()> {
        self.running = self.wake.as_ref().is_some_and(|wake| wake.send(()).is_ok());
        if self.running { Ok(()) } else { Err(gone()) }
    }

    /// Copies everything into the database file and empties the log, at a clean end.
    pub(super) fn close(&mut self, conn: &Connection) {
        self.stop();
        // A process that reads or writes at this moment keeps the log; the last one to close the store copies it.
        let emptied = conn.busy_timeout(Duration::ZERO).map_err(StoreError::from);
        let _ = emptied.and_then(|()| copy(conn, "TRUNCATE"));
    }

    pub(super) fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gone() -> StoreError {
    StoreError::Io("the thread that copies the write-ahead log has ended".to_owned())
}

/// Copies the rest, waits for readers of the log, and lets the next batch write the log from its beginning.
fn restart_log(conn: &Connection, wait: Duration) -> StoreResult<()> {
    conn.busy_timeout(wait)?;
    let log = copy(conn, "RESTART");
    conn.busy_timeout(connect::BUSY_WAIT)?;
    log.map(drop)
}

fn copy(conn: &Connection, how: &str) -> StoreResult<Log> {
    let mut statement = conn.prepare_cached(&format!("PRAGMA wal_checkpoint({how})"))?;
    Ok(statement.query_row([], |row| Ok(Log { pages: row.get(1)?, copied: row.get(2)? }))?)
}
