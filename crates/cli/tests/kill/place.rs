//! A folder with a definition, its data, and the lines that its steps wrote.

use crate::ledger::Ledger;
use crate::rig::{CommandOutput, windlass};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Steps of each chain.
pub const STEPS: usize = 10;

/// Says in which life of the program a step ran.
const LIFE: &str = "LIFE";

pub struct Place {
    dir: TempDir,
}

/// End of a process of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Killed,
    ByItself,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("lines")).expect("a folder for lines");
        fs::write(dir.path().join("chain.yaml"), chain()).expect("the definition is written");
        Place { dir }
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("data").join("windlass.db")
    }

    /// Returns the numbers of the processes in which each step ran, by `EXECUTION.STEP`.
    pub fn lines(&self) -> BTreeMap<String, Vec<usize>> {
        let files = fs::read_dir(self.dir.path().join("lines")).expect("the folder is there");
        files.map(|file| file_lines(&file.expect("a file").path())).collect()
    }

    /// Begins the next life of the program.
    pub fn start(&self, ledger: &Ledger, args: &[&str]) -> Life {
        let began = Instant::now();
        let child = self.here(windlass(), ledger).args(args).spawn().expect("the program starts");
        Life { child, began }
    }

    pub fn windlass(&self, ledger: &Ledger, args: &[&str]) -> CommandOutput {
        let mut command = self.here(windlass(), ledger);
        command.args(args);
        CommandOutput::of(command)
    }

    /// Maximum size of a file; larger writes fail.
    pub fn limited(&self, ledger: &Ledger, bytes: usize, args: &[&str]) -> CommandOutput {
        let blocks = bytes / 512;
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_windlass")]).args(args);
        CommandOutput::of(self.here(command, ledger))
    }

    /// Runs the program with its data on a disk of this size, and moves them to a large disk afterwards.
    pub fn on_small_disk(&self, ledger: &Ledger, bytes: usize, args: &[&str]) -> CommandOutput {
        let script = format!(
            "mkdir -p data small && mount -t tmpfs -o size={bytes} none small && \
             WINDLASS_DATA=small \"$@\"; code=$?; cp small/windlass.db* data/; exit $code"
        );
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_windlass")]).args(args);
        CommandOutput::of(self.here(command, ledger))
    }

    fn here(&self, mut command: Command, ledger: &Ledger) -> Command {
        command
            .current_dir(self.dir.path())
            .env("WINDLASS_DATA", "data")
            .env(LIFE, ledger.life().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }
}

/// Every step appends the number of the life it runs in to a file of its own.
fn chain() -> String {
    let mut text =
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: chain, path: chain}\nworkflow:\n"
            .to_owned();
    for number in 0..STEPS {
        let command = format!("echo ${LIFE} >> lines/$WINDLASS_EXECUTION_ID.$WINDLASS_STEP");
        let _ = writeln!(text, "- step: s{number}\n  tool: {{kind: shell, command: '{command}'}}");
        if number + 1 < STEPS {
            let _ = writeln!(text, "  next: {{arcs: [{{step: s{}}}]}}", number + 1);
        }
    }
    text
}

fn file_lines(path: &Path) -> (String, Vec<usize>) {
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("lines are text");
    (name, text.lines().map(|line| line.parse().expect("the number of a life")).collect())
}

/// The program while it runs.
pub struct Life {
    child: Child,
    began: Instant,
}

impl Life {
    /// Waits until it reports the execution that it began; None when it ends without a word.
    pub fn first_word(&mut self) -> Option<Duration> {
        let mut words = BufReader::new(self.child.stderr.as_mut().expect("a pipe"));
        let mut line = String::new();
        let read = words.read_line(&mut line).expect("words are text");
        assert!(read == 0 || line.starts_with("exec_"), "it reports its execution first, not: {line}");
        (read > 0).then(|| self.began.elapsed())
    }

    /// Kills it, unless it ends before.
    pub fn kill(mut self, after: Duration) -> End {
        let end = Instant::now() + after;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("its state is known") {
                assert!(status.success(), "it ended with {status}");
                return End::ByItself;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.child.kill().expect("it is killed");
        match self.child.wait().expect("it ends").code() {
            None => End::Killed,
            // It was faster.
            Some(code) => {
                assert_eq!(code, 0);
                End::ByItself
            }
        }
    }
}
