//! Real processes, killed for real. Two of the "tests" here are what the other processes of these tests run: the test
//! program starts itself with their names.

use crate::engine::{PATIENCE, Shop, command};
use crate::sandbox::APART;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;
use windlass_protocol::Order;
use windlass_worker::{OwnCommand, supervisor};

#[test]
#[ignore = "what a supervisor process runs"]
fn supervisor_process() {
    let argv: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if let Ok(output) = File::options().write(true).open("/proc/self/fd/3") {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
        supervisor::run(&argv, socket, output.into()).unwrap();
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

pub fn supervisor_command() -> OwnCommand {
    let (program, args) = own_process("supervisor::supervisor_process");
    let args = ["-c".into(), APART.into(), program.into_os_string()].into_iter().chain(args).collect();
    OwnCommand { program: "/bin/sh".into(), args }
}

/// A zombie counts as ended: there may be no process to reap it.
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

#[test]
fn a_killed_worker_leaves_no_process_behind() {
    let (program, args) = own_process("supervisor::worker_process");
    let mut worker =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let finished = lines.find_map(|line| line.unwrap().strip_prefix("sleeper ").map(str::to_owned));
    let sleeper = finished.expect("the worker reports the process it started");
    assert!(lives(&sleeper));
    worker.kill().unwrap();
    worker.wait().unwrap();
    wait_until_gone(&sleeper);
}

#[test]
fn what_left_its_session_and_its_environment_ends_with_the_step() {
    let shop = Shop::open();
    let finished = shop.run(command(
        "env -i setsid sh -c 'setsid sleep 1000 & echo pid $!' & wait; (setsid sleep 1000 & echo pid $!)",
    ));
    let pids: Vec<String> =
        finished.lines.iter().filter_map(|line| line.text.strip_prefix("pid ").map(str::to_owned)).collect();
    assert_eq!(pids.len(), 2, "{:?}", finished.lines);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
}
