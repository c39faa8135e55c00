//! Stored records of every kind, as the first release wrote them. They are read for ever: a change that cannot read
//! these files, or that writes the same records otherwise, needs a new format number and a new folder.

mod examples;

use crate::commit::CommitId;
use crate::journal::{FORMAT, Sealed, open, seal};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use windlass_kernel::{Event, ExecutionId, Record};

/// File name of every golden row; the checksum covers it.
const EXECUTION: ExecutionId = ExecutionId(0x0193_2b1c_7d00_7abc_8def_0123_4567_89ab);
const VERSION: u64 = 41;
const COMMIT: CommitId = CommitId(0xfeed);
/// Writes files that are missing, once, when a kind of event is new.
const WRITE: &str = "WINDLASS_WRITE_GOLDEN";

macro_rules! kinds {
    ($($variant:ident = $name:literal),* $(,)?) => {
        const KINDS: &[&str] = &[$($name),*];

        /// A new kind of event does not compile before it has a name here, and fails before it has a file.
        fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant { .. } => $name),* }
        }
    };
}

kinds! {
    Created = "created",
    Assigned = "assigned",
    TimeCame = "time_came",
    Started = "started",
    Held = "held",
    Released = "released",
    Paused = "paused",
    Resumed = "resumed",
    Draining = "draining",
    Cleared = "cleared",
    StopAsked = "stop_asked",
    Compensating = "compensating",
    Finalizing = "finalizing",
    Ended = "ended",
    Restarted = "restarted",
    Continued = "continued",
    Routed = "routed",
    Denied = "denied",
    Admitted = "admitted",
    Discarded = "discarded",
    Fired = "fired",
    Skipped = "skipped",
    Waiting = "waiting",
    Woken = "woken",
    Delayed = "delayed",
    Offered = "offered",
    Lost = "lost",
    RetryScheduled = "retry_scheduled",
    Yielded = "yielded",
    AwaitingManual = "awaiting_manual",
    CompletedManually = "completed_manually",
    Done = "done",
    Failed = "failed",
    Dropped = "dropped",
    LoopStarted = "loop_started",
    IterationStarted = "iteration_started",
    IterationEnded = "iteration_ended",
    Patched = "patched",
    ChildStarted = "child_started",
    ChildPaused = "child_paused",
    Returned = "returned",
    NotCompensated = "not_compensated",
    AgentDecided = "agent_decided",
    Forked = "forked",
    Joined = "joined",
}

/// A field that came later has files of its own: those from before it never change.
const LATER: [&str; 5] =
    ["done_metadata", "failed_metadata", "iteration_ended_output", "failed_of_loops", "restarted_started"];

fn file(event: &Event) -> &'static str {
    match event {
        Event::Done { metadata: Some(_), .. } => LATER[0],
        Event::Failed { metadata: Some(_), .. } => LATER[1],
        Event::IterationEnded { output: Some(_), .. } => LATER[2],
        Event::Failed { partial: true, .. } | Event::Failed { deferred: true, .. } => LATER[3],
        Event::Restarted { started: true, .. } => LATER[4],
        _ => kind(event),
    }
}

fn files() -> impl Iterator<Item = &'static str> {
    KINDS.iter().chain(&LATER).copied()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/v1")
}

/// The examples of one kind, in their order.
fn expected() -> BTreeMap<&'static str, Vec<Record>> {
    let mut by_kind: BTreeMap<&'static str, Vec<Record>> = BTreeMap::new();
    for record in examples::records() {
        by_kind.entry(file(&record.event)).or_default().push(record);
    }
    by_kind
}

/// `kind checksum` a line.
fn checksums() -> BTreeMap<String, u32> {
    let text = fs::read_to_string(folder().join("checksums.txt")).unwrap_or_default();
    let line = |line: &str| {
        let (kind, checksum) = line.split_once(' ').unwrap();
        (kind.to_owned(), checksum.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn write_missing() {
    let mut checksums = checksums();
    for (kind, records) in expected() {
        let path = folder().join(format!("{kind}.json"));
        if !path.exists() {
            let sealed = seal(EXECUTION, VERSION, COMMIT, &records);
            fs::write(path, &sealed.bytes).unwrap();
            checksums.insert(kind.to_owned(), sealed.checksum);
        }
    }
    let lines: String = checksums.iter().map(|(kind, checksum)| format!("{kind} {checksum}\n")).collect();
    fs::write(folder().join("checksums.txt"), lines).unwrap();
}

#[test]
fn every_kind_of_event_has_a_golden_file() {
    if std::env::var_os(WRITE).is_some() {
        write_missing();
    }
    let checksums = checksums();
    let has = |kind: &&str| folder().join(format!("{kind}.json")).exists() && checksums.contains_key(*kind);
    let missing: Vec<&str> = files().filter(|kind| !has(kind)).collect();
    assert!(missing.is_empty(), "no golden file for {missing:?}: add an example and run once with {WRITE}=1");
}

#[test]
fn golden_files_are_read_as_what_was_written() {
    let (expected, checksums) = (expected(), checksums());
    for kind in files() {
        let bytes = fs::read(folder().join(format!("{kind}.json"))).unwrap();
        let sealed = Sealed { format: 1, checksum: checksums[kind], bytes };
        let records = open(EXECUTION, VERSION, COMMIT, &sealed).unwrap();
        assert_eq!(records, expected[kind], "{kind}");
    }
}

#[test]
fn the_same_records_are_written_as_the_same_bytes() {
    assert_eq!(FORMAT, 1, "a new format has a folder and tests of its own");
    for (kind, records) in expected() {
        let sealed = seal(EXECUTION, VERSION, COMMIT, &records);
        let golden = fs::read(folder().join(format!("{kind}.json"))).unwrap();
        assert_eq!(String::from_utf8(sealed.bytes).unwrap(), String::from_utf8(golden).unwrap());
        assert_eq!(sealed.checksum, checksums()[kind], "{kind}");
    }
}

#[test]
fn a_row_of_an_unknown_format_is_not_read() {
    let sealed = seal(EXECUTION, VERSION, COMMIT, &[]);
    for format in [0, FORMAT + 1, u32::MAX] {
        let damage = open(EXECUTION, VERSION, COMMIT, &Sealed { format, ..sealed.clone() }).unwrap_err();
        assert!(damage.what.contains("format"), "{damage}");
    }
}
