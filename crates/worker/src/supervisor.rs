//! The supervisor of one program of a step: a process whose descendants are the program and all processes that it
//! starts. It ends when all of them have ended.
//!
//! A process group is not enough, because `setsid` leaves it. The supervisor is a subreaper: an orphaned descendant
//! becomes its child, in any session, group or environment. It is the worker's own program with a hidden subcommand
//! that calls [`run`], and talks to the worker over a socket that is its standard input:
//!
//! | from the worker | meaning |
//! |---|---|
//! | `go MASK FILES PAGES` | start the program with this file mode mask, this limit on open files and `huge` pages, `-` for its own |
//! | `term` | send TERM to all of it |
//! | `kill`, or the end of the socket | send KILL to all of it until nothing is left |
//!
//! | to the worker | meaning |
//! |---|---|
//! | `began PID` | the program runs, in a process group of that number |
//! | `ended STATUS` | the program has ended with that status of `wait`; what it started may still run |
//!
//! The system closes the socket when the worker ends for any reason.

use crate::inherited;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, wait,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) const GO: &str = "go ";
pub(crate) const TERM: &str = "term";
pub(crate) const KILL: &str = "kill";
pub(crate) const BEGAN: &str = "began ";
pub(crate) const ENDED: &str = "ended ";

/// Exit codes of shells for a program that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// The worker ended before it knew of the program.
const NOT_BEGUN: u8 = 125;

/// Pause between two rounds of KILL: a process that forks during a round is found in the next one.
const AGAIN: Duration = Duration::from_millis(10);

/// Runs the program until all its processes have ended; returns the exit code of the supervisor.
pub fn run(argv: &[OsString], socket: UnixStream, stdout: Stdio) -> io::Result<u8> {
    let mut orders = BufReader::new(socket.try_clone()?);
    let mut order = String::new();
    orders.read_line(&mut order)?;
    let (Some(described), Some((program, args))) = (order.trim_end().strip_prefix(GO), argv.split_first())
    else {
        return Ok(NOT_BEGUN);
    };
    inherited::restore(described)?;
    set_child_subreaper(Some(getpid()))?;
    let started =
        Command::new(program).args(args).stdin(Stdio::null()).stdout(stdout).process_group(0).spawn();
    let child = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            eprintln!("{}: {error}", program.to_string_lossy());
            report(&socket, &format!("{ENDED}{}", i32::from(code) << 8));
            return Ok(code);
        }
    };
    report(&socket, &format!("{BEGAN}{}", child.as_raw_nonzero()));
    thread::spawn(move || obey(orders, child));
    wait_for_descendants(child, &socket)
}

/// Waits until every descendant has ended.
fn wait_for_descendants(child: Pid, socket: &UnixStream) -> io::Result<u8> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => report(socket, &format!("{ENDED}{}", status.as_raw())),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes a line to the worker. An error is ignored: a worker that has ended reads nothing, and the socket is closed.
fn report(mut socket: &UnixStream, line: &str) {
    let _ = socket.write_all(format!("{line}\n").as_bytes());
}

fn obey(orders: impl BufRead, child: Pid) {
    for order in orders.lines().map_while(Result::ok) {
        match order.as_str() {
            TERM => signal(child, Signal::TERM),
            KILL => break,
            _ => {}
        }
    }
    loop {
        signal(child, Signal::KILL);
        thread::sleep(AGAIN);
    }
}

/// Signals the program's group as a whole, and every other descendant by itself. Processes that have ended need no
/// signal.
fn signal(child: Pid, signal: Signal) {
    let _ = kill_process_group(child, signal);
    for process in descendants() {
        if process.group != child.as_raw_nonzero().get()
            && let Some(pid) = Pid::from_raw(process.pid)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

fn descendants() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    below(getpid().as_raw_nonzero().get(), stats.filter_map(|stat| parse(&stat)))
}

fn below(root: i32, processes: impl Iterator<Item = Process>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut at = 0;
    while let Some(process) = found.get(at) {
        // Entries are removed, so that a table that changed while it was read visits none twice.
        let more = children.remove(&process.pid).unwrap_or_default();
        found.extend(more);
        at += 1;
    }
    found
}

/// Parses `pid (name) state parent group …`; the name may contain anything, including parentheses.
fn parse(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(1).map(str::parse);
    Some(Process { pid: pid.parse().ok()?, parent: fields.next()?.ok()?, group: fields.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_in_any_session_and_others_are_not() {
        let stats = [
            "1 (init) S 0 1 1 0 -1",
            "40 (windlass) S 1 40 40 0 -1",
            "41 (sh) S 40 41 41 0 -1",
            "42 (a) b) c) S 41 42 42 0 -1",
            "43 (sleep) S 42 43 43 0 -1",
            "44 (orphan) S 40 44 44 0 -1",
            "50 (other) S 1 41 41 0 -1",
            "nonsense",
        ];
        let found = below(40, stats.iter().filter_map(|stat| parse(stat)));
        let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        assert_eq!(pids, [41, 44, 42, 43]);
    }
}
