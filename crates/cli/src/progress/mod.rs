//! Progress of executions on stderr: a list that is redrawn on a terminal, lines in a pipe.

mod board;
mod lines;
mod screen;

pub use screen::terminal_rows;

use crate::follow::Follower;
use lines::Lines;
use screen::Screen;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;
use windlass_views::{ProgressState, execution_id};

/// Minimum time between two redraws.
pub const TICK: Duration = Duration::from_millis(100);

/// Progress of one execution on stderr.
#[derive(Debug)]
pub struct Progress {
    follower: Follower,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Lines(Lines),
    Screen(Box<Screen>),
}

impl Progress {
    /// `flag` is the flag that commands need for the same API.
    pub fn new(follower: Follower, flag: &str) -> Progress {
        let shown = if stderr().is_terminal() {
            Shown::Screen(Box::new(Screen::new(Style::for_stderr())))
        } else {
            Shown::Lines(Lines::new(flag))
        };
        Progress { follower, shown }
    }

    /// Follows an execution and shows nothing.
    pub fn quiet(follower: Follower) -> Progress {
        Progress { follower, shown: Shown::Nothing }
    }

    /// Prints the changes since the last call.
    pub fn tick(&mut self) -> anyhow::Result<()> {
        let seen = self.follower.poll()?;
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines(lines) => lines.print_changes(&execution_id(self.follower.id()), &seen),
            Shown::Screen(screen) => {
                screen.add_changes(self.follower.steps(), &seen, self.follower.state());
            }
        }
        Ok(())
    }

    /// Returns the state of the last tick.
    pub fn state(&self) -> &ProgressState {
        self.follower.state()
    }

    /// Returns the position of the last tick, which changes with every change of the execution.
    pub fn cursor(&self) -> Option<&str> {
        self.follower.cursor()
    }

    /// Stops the display and leaves the last state on the screen.
    pub fn end(mut self) -> anyhow::Result<Follower> {
        self.tick()?;
        if let Shown::Screen(screen) = self.shown {
            screen.end();
        }
        Ok(self.follower)
    }
}

/// Writes to stderr. An error is ignored: the reader has closed it.
pub fn say(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// Returns whether colours are used.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    colours: bool,
}

impl Style {
    pub fn for_stderr() -> Style {
        Style { colours: stderr().is_terminal() && is_unset("NO_COLOR") }
    }

    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn is_unset(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| value.is_empty())
}
