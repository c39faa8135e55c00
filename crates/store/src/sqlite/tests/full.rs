//! A disk without space. The scenario runs in processes of its own that are given a small disk, or files that may not
//! grow; in both cases everything that was answered must come out of it.

use super::write;
use crate::check::check;
use crate::commit::Write;
use crate::conformance::world::{World, circle, definition};
use crate::sqlite::Sqlite;
use crate::store::{Reader as _, Store as _};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_kernel::{Execution, ExecutionId};

const FOLDER: &str = "WINDLASS_TEST_SMALL_DISK";

struct Places {
    store: PathBuf,
    ballast: PathBuf,
    answered: PathBuf,
}

fn places() -> Places {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let place = |name: &str| folder.join(name);
    Places { store: place("windlass.db"), ballast: place("ballast"), answered: place("answered") }
}

fn state(path: &Path) -> Execution<'static> {
    Sqlite::read_only(path).unwrap().load(ExecutionId(1)).unwrap().unwrap().state
}

/// Writes until the disk refuses, then makes room.
#[test]
#[ignore = "needs a small disk, which the tests below make for it"]
fn fills_the_disk() {
    let places = places();
    std::fs::write(&places.ballast, vec![1; 2 << 20]).unwrap();
    let mut store = Sqlite::open(&places.store).unwrap();
    store.write(&[Write::Define(Box::new(definition("circle", "circle", &circle())))]).unwrap();
    let (mut world, created) = World::create(&circle(), 1);
    write(&mut store, [created]);
    let mut answered = world.state.clone();
    let error = loop {
        let next = Write::Commit(Box::new(world.done(json!("x".repeat(20_000)))));
        match store.write(&[next]) {
            Ok(_) => answered = world.state.clone(),
            Err(error) => break error,
        }
    };
    println!("error: {error:?}");
    let later = store.write(&[]).unwrap_err().to_string();
    assert!(later.contains("an earlier write failed"), "{later}");
    drop(store);
    assert_eq!(state(&places.store), answered, "while there is no space, it can be read");
    std::fs::remove_file(&places.ballast).unwrap();
    std::fs::write(&places.answered, answered.head.version.to_string()).unwrap();
}

#[test]
#[ignore = "needs what the test above left"]
fn writes_continue_with_space() {
    let places = places();
    let mut store = Sqlite::open(&places.store).unwrap();
    let mut world = World { state: state(&places.store), ..World::new(&circle()) };
    assert_eq!(world.state.head.version.to_string(), std::fs::read_to_string(&places.answered).unwrap());
    write(&mut store, [world.done(json!("small"))]);
    drop(store);
    assert_eq!(state(&places.store), world.state);
    let report = check(&mut Sqlite::read_only(&places.store).unwrap(), &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    println!("came out well after {} events", world.state.head.version);
}

/// Runs both parts in a shell of its own: `prepare` holds for `limited` only what it does there. None: the system does
/// not let us.
fn run(shell: &[&str], prepare: &str, limited: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str| format!("\"$1\" --exact sqlite::tests::full::{name} --ignored --nocapture 2>&1");
    let script = format!(
        "{prepare} || exit 77; ({limited} {}) && {}",
        part("fills_the_disk"),
        part("writes_continue_with_space")
    );
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["sh", "-c", &script]).arg(folder.path());
    let output = command.arg(std::env::current_exe().unwrap()).env(FOLDER, folder.path()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.contains("running 1 test") {
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some(text)
}

#[test]
fn a_full_disk_loses_nothing_that_was_answered() {
    let mount = "mount -t tmpfs -o size=5m tmpfs \"$0\"";
    let output = run(&["unshare", "--mount"], mount, "")
        .or_else(|| run(&["unshare", "--map-root-user", "--mount"], mount, ""));
    let Some(output) = output else {
        eprintln!("not run: this system does not permit mounting a small disk");
        return;
    };
    assert!(output.contains("error: Full("), "{output}");
    assert!(output.contains("came out well"), "{output}");
}

#[test]
fn a_file_that_may_not_grow_loses_nothing_that_was_answered() {
    let output = run(&["env"], "true", "trap '' XFSZ; ulimit -f 4500;").unwrap();
    assert!(output.contains("error: Io("), "{output}");
    assert!(output.contains("came out well"), "{output}");
}
