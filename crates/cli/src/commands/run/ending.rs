//! Waits for executions and reports how they ended.

pub use super::wait::Waited;
use super::wait::wait;
use crate::api::{ApiError, Client, OPEN, get_execution, list_executions};
use crate::commands::counted;
use crate::commands::failure::{FailureReport, Files};
use crate::commands::report::{print_json, report_end, report_failures};
use crate::exit;
use crate::progress::say;
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

#[derive(Debug, Clone)]
pub struct Ending<'c> {
    pub client: &'c Rc<Client>,
    pub json: bool,
    pub shows: EndingOptions,
}

/// Options for the output about executions besides their results.
#[derive(Debug, Clone, Default)]
pub struct EndingOptions {
    /// Files of the definitions.
    pub files: Files,
    /// Whether no progress is shown.
    pub is_quiet: bool,
    /// Whether failures are shown with their stacks.
    pub debug: bool,
}

impl Ending<'_> {
    /// Waits until the executions rest or a signal arrives, and reports them; the exit codes are those of `run`.
    pub fn until_rest(&self, ids: &[ExecutionId], signals: &Receiver<i32>) -> anyhow::Result<ExitCode> {
        match self.wait(ids, signals)? {
            Waited::Rested(statuses) => {
                self.print(ids, &statuses)?;
                self.report_others(ids)?;
                Ok(ExitCode::from(exit::of_all(statuses.iter().map(String::as_str))))
            }
            Waited::Interrupted(signal) => Ok(ExitCode::from(exit::of_signal(signal))),
        }
    }

    /// Waits until the executions rest, or until a signal arrives, which is reported with the commands that go on.
    pub fn wait(&self, ids: &[ExecutionId], signals: &Receiver<i32>) -> anyhow::Result<Waited> {
        let waited = wait(self.client, ids, signals, self.shows.is_quiet);
        let waited = waited.map_err(|error| self.lost(error, ids))?;
        if let Waited::Interrupted(_) = waited {
            if self.client.is_in_process() {
                say("interrupted: stopping running steps (press again to stop at once)");
            }
            self.report_how_to_go_on(ids);
        }
        Ok(waited)
    }

    /// Adds to an error that executions at a server that cannot be reached continue there.
    fn lost(&self, error: anyhow::Error, ids: &[ExecutionId]) -> anyhow::Error {
        if error.downcast_ref::<ApiError>().is_some_and(ApiError::is_passing) {
            self.report_how_to_go_on(ids);
        }
        error
    }

    fn report_how_to_go_on(&self, ids: &[ExecutionId]) {
        let flag = self.client.flag();
        match (self.client.is_server(), ids) {
            (false, [id]) => say(&format!("continue it with:\n  {}", self.client.resume_command(*id))),
            (false, _) => say(&format!("continue them with:\n  windlass run --resume{flag}")),
            (true, [id]) => {
                let (follow, id) = (self.client.resume_command(*id), execution_id(*id));
                say(&format!(
                    "it continues at the server; follow it with:\n  {follow}\nor end it with:\n  windlass executions cancel {id}{flag}"
                ));
            }
            (true, _) => say(&format!(
                "they continue at the server; list them with:\n  windlass executions list{flag}"
            )),
        }
    }

    /// Reports open executions of the folder that this process leaves.
    fn report_others(&self, ids: &[ExecutionId]) -> anyhow::Result<()> {
        if !self.client.is_in_process() {
            return Ok(());
        }
        let ids: BTreeSet<String> = ids.iter().map(|id| execution_id(*id)).collect();
        let (open, _) = list_executions(self.client, &OPEN, usize::MAX)?;
        let is_other = |id: &str| !ids.contains(id);
        let others = open.iter().filter(|row| row["executionId"].as_str().is_some_and(is_other));
        let others = others.filter(|row| row["status"] != "paused").count();
        if others > 0 {
            let (others, flag) = (counted(others, "other execution"), self.client.flag());
            say(&format!(
                "not ended: {others} in this folder; continue with:\n  windlass run --resume{flag}"
            ));
        }
        Ok(())
    }

    fn failure_report(&self) -> FailureReport<'_> {
        let EndingOptions { files, debug, .. } = &self.shows;
        FailureReport { client: self.client, files, debug: *debug }
    }

    fn print(&self, ids: &[ExecutionId], statuses: &[String]) -> anyhow::Result<()> {
        for (id, status) in ids.iter().zip(statuses) {
            if self.json {
                let execution = get_execution(self.client, *id)?;
                print_json(&execution)?;
                if let [_] = ids {
                    report_failures(self.failure_report(), &execution);
                }
            } else if let [_] = ids {
                report_end(self.failure_report(), self.client, &get_execution(self.client, *id)?)?;
            } else {
                writeln!(std::io::stdout(), "{} {status}", execution_id(*id))?;
            }
        }
        Ok(())
    }
}
