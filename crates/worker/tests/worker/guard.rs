//! Real processes, killed for real. Two of the "tests" here are what the other processes of these tests run: the test
//! program starts itself with their names.

use crate::engine::{PATIENCE, Shop, command};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use windlass_protocol::Order;
use windlass_worker::guard::{self, Guard, GuardCommand};

#[test]
#[ignore = "what a guard process runs"]
fn guard_process() {
    if !io::stdin().is_terminal() {
        guard::run(io::stdin());
    }
}

#[test]
#[ignore = "a worker that is killed"]
fn worker_process() {
    if io::stdin().is_terminal() {
        return;
    }
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(command("sleep 1000 & echo pid $!; trap '' TERM; wait; wait"))));
    println!("\nsleeper {}", shop.line("pid "));
    // Until the test is done with it.
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn own_process(name: &str) -> (std::path::PathBuf, Vec<OsString>) {
    let args = ["--ignored", "--exact", "--nocapture", name].map(OsString::from);
    (std::env::current_exe().unwrap(), args.to_vec())
}

pub fn guard_command() -> GuardCommand {
    let (program, args) = own_process("guard::guard_process");
    GuardCommand { program, args }
}

/// A zombie is as good as gone: nobody may be there to bury it.
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

fn wait_until_gone(pid: &str) {
    let began = Instant::now();
    while lives(pid) {
        assert!(began.elapsed() < PATIENCE, "process {pid} still lives");
        std::thread::yield_now();
    }
}

/// The first thread of a process may be a zombie while others of it still hold its pipes: only when all are gone can
/// its parent hear of its end. It is left for the parent to bury.
fn wait_until_buriable(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
}

/// In a group of its own; killed when the test is over, however it ends.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Sleeper(command.spawn().unwrap())
    }

    fn group(&self) -> i32 {
        self.0.id().cast_signed()
    }

    fn was_killed(&mut self) -> bool {
        self.0.wait().unwrap().signal() == Some(Signal::KILL.as_raw())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_worker_leaves_no_process_behind() {
    let (program, args) = own_process("guard::worker_process");
    let mut worker =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let told = lines.find_map(|line| line.unwrap().strip_prefix("sleeper ").map(str::to_owned));
    let sleeper = told.expect("the worker tells the process it started");
    assert!(lives(&sleeper));
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_until_gone(&sleeper);
}

#[test]
fn the_guard_kills_what_is_listed_and_nothing_else() {
    let (mut listed, mut ended) = (Sleeper::start(), Sleeper::start());
    let mut guard = Guard::spawn(guard_command()).unwrap();
    for sleeper in [&listed, &ended] {
        guard.began(sleeper.group()).unwrap();
    }
    guard.ended(ended.group());
    drop(guard);
    assert!(listed.was_killed());
    assert!(ended.0.try_wait().unwrap().is_none(), "what ended by itself is not the guard's any more");
}

#[test]
fn a_guard_that_was_killed_is_replaced_and_the_new_one_knows_every_group() {
    let (mut first, mut second) = (Sleeper::start(), Sleeper::start());
    let mut guard = Guard::spawn(guard_command()).unwrap();
    guard.began(first.group()).unwrap();
    let killed = guard.id();
    kill_process(Pid::from_raw(killed.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until_buriable(killed);
    guard.began(second.group()).unwrap();
    assert_ne!(guard.id(), killed);
    drop(guard);
    assert!(first.was_killed() && second.was_killed());
}

#[test]
fn a_guard_that_cannot_be_started_is_told() {
    let command = GuardCommand { program: "/nowhere/windlass".into(), args: vec![] };
    let told = Guard::spawn(command).unwrap_err().to_string();
    assert!(told.starts_with("the guard process `/nowhere/windlass` cannot be used: No such file"), "{told}");
}
