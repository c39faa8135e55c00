//! Waits for executions that this process began or took up, and tells what came of them.

use super::wait::{Waited, wait, wait_afar};
use crate::commands::counted;
use crate::commands::told::{print_json, tell_end};
use crate::embedded::Embedded;
use crate::exit;
use crate::place::{Place, ServerError};
use crate::progress::say;
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use windlass_kernel::{ExecutionId, Phase};
use windlass_views::{execution_id, status};

#[derive(Debug, Clone, Copy)]
pub struct Ending<'p> {
    pub place: &'p Place,
    pub json: bool,
}

/// Who works on the executions.
#[derive(Debug)]
pub enum Runs {
    /// This process, as long as it waits.
    Here(Box<Embedded>),
    /// A server, whoever waits.
    There,
}

impl Ending<'_> {
    /// Waits until they rest or somebody interrupts, and tells; the exit code is that of `run`.
    pub fn until_rest(
        &self,
        runs: Runs,
        ids: &[ExecutionId],
        signals: &Receiver<i32>,
    ) -> anyhow::Result<ExitCode> {
        let waited = match runs {
            Runs::Here(embedded) => self.until_engine_ends(*embedded, ids, signals)?,
            Runs::There => wait_afar(self.place, ids, signals).map_err(|error| self.lost(error, ids))?,
        };
        match waited {
            Waited::Rested(rested) => {
                self.print(&rested)?;
                self.tell_of_others(ids)?;
                Ok(ExitCode::from(exit::of_all(rested.iter().map(|(_, phase)| *phase))))
            }
            Waited::Interrupted(signal) => {
                self.tell_how_to_go_on(ids);
                Ok(ExitCode::from(exit::of_signal(signal)))
            }
        }
    }

    fn until_engine_ends(
        &self,
        embedded: Embedded,
        ids: &[ExecutionId],
        signals: &Receiver<i32>,
    ) -> anyhow::Result<Waited> {
        let waited = wait(&embedded, self.place, ids, signals);
        if let Ok(Waited::Interrupted(_)) = waited {
            say("interrupted: ending what runs (once more: at once)");
        }
        let stopped = embedded.stop();
        let waited = waited?;
        stopped?;
        Ok(waited)
    }

    /// Whoever loses sight of a server knows that nothing else is lost.
    fn lost(&self, error: anyhow::Error, ids: &[ExecutionId]) -> anyhow::Error {
        if error.downcast_ref::<ServerError>().is_some_and(ServerError::is_passing) {
            self.tell_how_to_go_on(ids);
        }
        error
    }

    fn tell_how_to_go_on(&self, ids: &[ExecutionId]) {
        let flag = self.place.flag();
        match (self.place, ids) {
            (Place::Folder(data), [id]) => say(&format!("carry on with:\n  {}", data.resume(*id))),
            (Place::Folder(_), _) => say(&format!("carry on with:\n  windlass run --resume{flag}")),
            (Place::Server(_), [id]) => {
                let (id, follow) = (execution_id(*id), self.place.resume(*id));
                say(&format!(
                    "it goes on at the server; follow it with:\n  {follow}\nor end it with:\n  windlass executions cancel {id}{flag}"
                ));
            }
            (Place::Server(_), _) => {
                say(&format!("they go on at the server; list them with:\n  windlass executions list{flag}"));
            }
        }
    }

    /// Whatever was unfinished in a folder went on meanwhile, as far as it came.
    fn tell_of_others(&self, ids: &[ExecutionId]) -> anyhow::Result<()> {
        let Place::Folder(data) = self.place else { return Ok(()) };
        let ids: BTreeSet<String> = ids.iter().map(|id| execution_id(*id)).collect();
        let (open, _) = self.place.list(Some("open"), usize::MAX)?;
        let is_other = |id: &str| !ids.contains(id);
        let others = open.iter().filter(|row| row["executionId"].as_str().is_some_and(is_other));
        let others = others.filter(|row| row["status"] != "paused").count();
        if others > 0 {
            let others = counted(others, "other execution");
            say(&format!(
                "not ended: {others} in this folder; carry on with:\n  windlass run --resume{}",
                data.flag()
            ));
        }
        Ok(())
    }

    fn print(&self, rested: &[(ExecutionId, Phase)]) -> anyhow::Result<()> {
        for (id, phase) in rested {
            if self.json {
                print_json(&self.place.told(*id)?)?;
            } else if let [_] = rested {
                tell_end(self.place, *id, *phase)?;
            } else {
                writeln!(std::io::stdout(), "{} {}", execution_id(*id), status(*phase))?;
            }
        }
        Ok(())
    }
}
