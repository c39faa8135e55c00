//! What an execution can be doing when a control meets it, and where it runs. Each step writes its name to `output` when it
//! begins, and with a dot when it ends; the step in question ends when the file `go` exists.

use crate::model::model;
use crate::rig::{CommandOutput, Place, Running, Server, is_gone, playbook, until};
use crate::{playbooks, workflows};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub struct Situation {
    pub name: &'static str,
    /// `DIR` is replaced with the folder of the test, `MODEL` with the address of a language model.
    pub definition: &'static str,
    /// Further definitions in the folder.
    pub others: &'static [(&'static str, &'static str)],
    /// Lines that are there when it has been reached.
    pub reached: &'static [&'static str],
    /// Status of the only entry in that situation.
    pub status: &'static str,
    /// Command that ends the wait, where no step runs. `ID` is replaced with the execution.
    pub opens: &'static [&'static str],
    pub ends: Ends,
}

/// The end of the execution, and the output of its steps, after each kind of control.
pub struct Ends {
    /// After a control that leaves running steps alone.
    pub released: &'static str,
    pub cancelled: &'static str,
    /// After the process that ran it has ended.
    pub repeated: &'static str,
    /// Of the retry of the cancelled execution.
    pub retried: &'static str,
}

pub fn all() -> impl Iterator<Item = &'static Situation> {
    playbooks::ALL.iter().chain(&workflows::ALL)
}

/// The two ways from a command to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the process that runs it, over the socket of the folder.
    Folder,
    /// To a server, over HTTP.
    Server,
}

pub const WAYS: [Way; 2] = [Way::Folder, Way::Server];

/// A folder with the definition, the command that follows the execution, and the execution.
pub struct Reached {
    pub place: Place,
    running: Option<Running>,
    /// In the folder, the command itself runs the execution.
    server: Option<Server>,
    pub id: String,
}

impl Situation {
    pub fn reach(&self, way: Way) -> Reached {
        let (place, server) = self.set(way, "");
        let mut running = place.start(&["run", "play.yaml"]);
        let id = running.until_says("exec_").split(':').next().expect("an id").to_owned();
        until(self.name, || (place.lines("output") == self.reached).then_some(()));
        let reached = Reached { place, running: Some(running), server, id };
        until(self.name, || (reached.status() == self.status).then_some(()));
        reached
    }

    /// A folder with the definitions, whose commands go that way. `settings` is a line for a workflow.
    pub fn set(&self, way: Way, settings: &str) -> (Place, Option<Server>) {
        let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
        let server = (way == Way::Server).then(|| place.serve());
        let place = server.iter().fold(place, Place::at);
        let dir = place.path("").display().to_string();
        let model = if self.definition.contains("MODEL") { model() } else { String::new() };
        for (file, text) in [&[("play.yaml", self.definition)], self.others].concat() {
            let text = match text.starts_with("name:") {
                true => text.replacen("nodes:", &format!("{settings}\nnodes:"), 1),
                false => playbook(file.trim_end_matches(".yaml"), text),
            };
            place.write(file, &text.replace("DIR", &dir).replace("MODEL", &model));
        }
        (place, server)
    }

    /// Whether it waits without a step at work.
    pub fn rests(&self) -> bool {
        !self.opens.is_empty()
    }

    /// Ends the wait of an execution.
    pub fn open(&self, place: &Place, id: &str) {
        let args: Vec<&str> = self.opens.iter().map(|arg| if *arg == "ID" { id } else { arg }).collect();
        place.windlass(&args).expect(0);
    }
}

impl Reached {
    /// Sends a control to the execution.
    pub fn control(&self, name: &str, args: &[&str]) -> CommandOutput {
        self.place.windlass(&[&["executions", name, &self.id], args].concat())
    }

    pub fn get(&self) -> Value {
        self.control("get", &["--json"]).expect(0).json()
    }

    /// Lets the steps end that wait for it.
    pub fn release(&self) {
        self.place.write("go", "");
    }

    /// Sends a signal to the process that runs the execution.
    pub fn signal(&self, signal: Signal) {
        let of_command = self.running.as_ref().map(Running::pid);
        let process = self.server.as_ref().map(Server::process).or(of_command).expect("a process");
        kill_process(pid(&process.to_string()), signal).expect("the signal is sent");
    }

    /// Waits for the end of the command that follows the execution; its code and what it wrote to stderr.
    pub fn followed(&mut self) -> (Option<i32>, String) {
        let (code, _, err) = self.running.take().expect("it is followed once").end();
        (code, err)
    }

    pub fn until_steps_are_gone(&self) {
        until("the steps are gone", || {
            self.place.lines("steps").iter().all(|line| is_gone(pid(line))).then_some(())
        });
    }

    /// Waits until the server has ended, and starts another one.
    pub fn restarted(mut self) -> Reached {
        self.server.take().expect("a server runs it").ended();
        // Before that, a step would see `go` and run on.
        self.until_steps_are_gone();
        self.release();
        let server = self.place.serve();
        Reached { place: self.place.at(&server), running: None, server: Some(server), id: self.id }
    }

    /// Checks the data when nothing uses it any more.
    pub fn check_data(self) {
        self.server.into_iter().for_each(|server| drop(server.stop()));
        let mut check = self.place.command(&["admin", "check"]);
        check.env_remove("WINDLASS_URL");
        CommandOutput::of(check).expect(0);
    }

    /// Status of the step in question, or of the execution if it waits for a person or at a gate.
    fn status(&self) -> String {
        let output = self.get();
        let entries = output["nodeExecutions"].as_array().cloned().unwrap_or_default();
        let mut begun = entries.iter().filter(|entry| entry["status"] != "pending");
        let last = begun.next_back().filter(|_| output["status"] != "paused");
        last.unwrap_or(&output)["status"].as_str().unwrap_or_default().to_owned()
    }
}

fn pid(line: &str) -> Pid {
    line.parse().ok().and_then(Pid::from_raw).expect("the id of a process")
}
