//! A line on a terminal with the progress of a benchmark; nothing in a pipe.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub struct Progress {
    what: Cell<&'static str>,
    next: Cell<Option<Instant>>,
}

impl Progress {
    pub fn new() -> Progress {
        let shows = std::io::stderr().is_terminal();
        Progress { what: Cell::new(""), next: Cell::new(shows.then(Instant::now)) }
    }

    /// Sets the current phase.
    pub fn phase(&self, what: &'static str) {
        self.what.set(what);
        if self.next.get().is_some() {
            self.next.set(Some(Instant::now()));
            self.show(String::new);
        }
    }

    pub fn show(&self, text: impl FnOnce() -> String) {
        let Some(next) = self.next.get() else { return };
        let now = Instant::now();
        if now >= next {
            self.next.set(Some(now + EVERY));
            eprint!("\r\x1b[K{} {}", self.what.get(), text());
            let _ = std::io::stderr().flush();
        }
    }

    pub fn clear(&self) {
        if self.next.get().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
