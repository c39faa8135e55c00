//! Children must not outlive a worker that was killed: the guard is a process that ends what the worker no longer can.
//!
//! The worker tells it every process group that begins and ends, through a pipe. The system closes the pipe when the
//! worker dies, however it dies; then the guard kills every group that is still listed. The guard is the worker's own
//! program with a hidden subcommand that calls [`run`]. It has a process group of its own, so that what a terminal
//! sends to the worker's group does not reach it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// How the guard is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
#[error("the guard process `{}` cannot be used: {source}; without it, processes of steps would outlive a killed worker", program.display())]
pub struct GuardError {
    pub program: PathBuf,
    pub source: io::Error,
}

/// What the guard process does: reads `+GROUP` and `-GROUP` lines, and at their end kills the groups still listed.
/// Returns how many there were.
pub fn run(lines: impl Read) -> usize {
    let listed = listed(lines);
    for group in listed.iter().filter_map(|group| Pid::from_raw(*group)) {
        // A group that is gone already is what was wanted.
        let _ = kill_process_group(group, Signal::KILL);
    }
    listed.len()
}

/// A line without its end was cut off by the death of the worker, and its number may be too.
fn listed(lines: impl Read) -> BTreeSet<i32> {
    let mut reader = BufReader::new(lines);
    let mut listed = BTreeSet::new();
    let mut line = String::new();
    while let Ok(1..) = reader.read_line(&mut line) {
        match parsed(&line) {
            Some((Change::Began, group)) => listed.insert(group),
            Some((Change::Ended, group)) => listed.remove(&group),
            None => false,
        };
        line.clear();
    }
    listed
}

#[derive(Clone, Copy)]
enum Change {
    Began,
    Ended,
}

/// Never group 1, which the system takes for every process there is, nor group 0, which would be the guard's own.
fn parsed(line: &str) -> Option<(Change, i32)> {
    let line = line.strip_suffix('\n')?;
    let (change, number) = match line.split_at_checked(1)? {
        ("+", number) => (Change::Began, number),
        ("-", number) => (Change::Ended, number),
        _ => return None,
    };
    Some((change, number.parse().ok().filter(|number| *number > 1)?))
}

/// The worker's end of it.
#[derive(Debug)]
pub struct Guard {
    command: GuardCommand,
    process: Child,
    listed: BTreeSet<i32>,
}

impl Guard {
    pub fn spawn(command: GuardCommand) -> Result<Guard, GuardError> {
        let process = start(&command)?;
        Ok(Guard { command, process, listed: BTreeSet::new() })
    }

    /// To be called before the group can do anything. After `Ok` it dies with the worker.
    pub fn began(&mut self, group: i32) -> Result<(), GuardError> {
        self.listed.insert(group);
        // The pipe alone does not tell: a process that is just being started may hold its other end for a moment.
        let is_there = matches!(self.process.try_wait(), Ok(None));
        if is_there && self.tell('+', group).is_ok() { Ok(()) } else { self.start_again() }
    }

    /// To be called when the whole group is gone.
    pub fn ended(&mut self, group: i32) {
        self.listed.remove(&group);
        // A guard that is gone is replaced when the next group begins, and then hears of living groups only.
        let _ = self.tell('-', group);
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn tell(&mut self, change: char, group: i32) -> io::Result<()> {
        let pipe = self.process.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // One write of a short line: it is never cut in two.
        pipe.write_all(format!("{change}{group}\n").as_bytes())
    }

    /// Somebody killed it: another one takes over all that is listed.
    fn start_again(&mut self) -> Result<(), GuardError> {
        let gone = std::mem::replace(&mut self.process, start(&self.command)?);
        end(gone);
        for group in self.listed.clone() {
            self.tell('+', group).map_err(|source| unusable(&self.command, source))?;
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.process.stdin = None;
        let _ = self.process.wait();
    }
}

fn start(command: &GuardCommand) -> Result<Child, GuardError> {
    Command::new(&command.program)
        .args(&command.args)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|source| unusable(command, source))
}

fn end(mut process: Child) {
    process.stdin = None;
    let _ = process.wait();
}

fn unusable(command: &GuardCommand, source: io::Error) -> GuardError {
    GuardError { program: command.program.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expected: &[i32]) {
        let found: Vec<i32> = listed(lines.as_bytes()).into_iter().collect();
        assert_eq!(found, expected, "{lines:?}");
    }

    #[test]
    fn groups_that_began_and_did_not_end_are_listed() {
        check("", &[]);
        check("+12\n+13\n-12\n", &[13]);
        check("+12\n-12\n+12\n+12\n", &[12]);
        check("-12\n+14\n", &[14]);
    }

    #[test]
    fn a_line_that_was_cut_off_names_nobody() {
        check("+120\n+12", &[120]);
        check("+120\n-120", &[120]);
        check("+", &[]);
    }

    #[test]
    fn a_number_that_would_mean_others_is_never_listed() {
        check("+0\n+1\n+-1\n+-40\n+x\n12\n*12\n\n+99999999999\n+é\n", &[]);
    }
}
