//! A folder of its own for a test's files and data.

use super::program::{CommandOutput, Running, until, windlass};
use super::server::Server;
use rustix::process::Pid;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

/// Data folder of the program, relative to the place.
const DATA: &str = "data";

/// A folder with files, its data among them, and what the commands and servers in it are given.
pub struct Place {
    dir: TempDir,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a folder"), flags: Vec::new(), variables: Vec::new() }
    }

    /// Creates a place with a playbook of these steps in `play.yaml`.
    pub fn playing(steps: &str) -> Place {
        let place = Place::new();
        place.write("play.yaml", &playbook("tested", steps));
        place
    }

    /// Adds flags to every server of the place.
    pub fn with(mut self, flags: &[&str]) -> Place {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Sets a variable in the environment of all commands and servers of the place.
    pub fn variable(mut self, name: &str, value: &str) -> Place {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes commands send requests to this server, as its owner.
    pub fn at(self, server: &Server) -> Place {
        self.variable("WINDLASS_URL", server.url()).variable("WINDLASS_TOKEN", server.token())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path(DATA)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the file is written");
    }

    /// Lines of a file that steps append to; none while it is not there.
    pub fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Works in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = windlass();
        command.args(args).current_dir(self.dir.path()).env("WINDLASS_DATA", DATA).env("NO_COLOR", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn windlass(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(args))
    }

    /// Runs a command with this text on standard input.
    pub fn given(&self, args: &[&str], input: &str) -> CommandOutput {
        CommandOutput::given(self.command(args), input.as_bytes())
    }

    /// Runs `play.yaml` with `--json` until it rests.
    #[track_caller]
    pub fn run(&self, args: &[&str], code: i32) -> Value {
        let all = [&["run", "play.yaml", "--json"], args].concat();
        self.windlass(&all).expect(code).json()
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    /// A server over the data here, on a port that is free.
    pub fn server_command(&self) -> Command {
        let mut command = self.command(&["serve"]);
        command.env("WINDLASS_LISTEN", "127.0.0.1:0").args(&self.flags);
        command
    }

    /// Starts a server and waits until it listens and is ready.
    pub fn serve(&self) -> Server {
        Server::start(self.server_command(), &self.data())
    }

    pub fn serve_on(&self, address: &str) -> Server {
        let mut command = self.server_command();
        command.env("WINDLASS_LISTEN", address);
        Server::start(command, &self.data())
    }

    /// Starts a server that does not come to listen; what it says before it ends.
    pub fn refuse(&self) -> (ExitStatus, String) {
        let (status, _, said) = Running::start(self.server_command()).ended();
        (status, said)
    }
}

/// A playbook of these steps.
pub fn playbook(name: &str, steps: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: {name}}}\n{steps}")
}

/// The process whose number a step wrote to a file.
pub fn process_of(place: &Place, file: &str) -> Pid {
    until("a step writes its process id", || {
        let number = place.lines(file).first()?.trim().parse().ok()?;
        Pid::from_raw(number)
    })
}
