//! Waits for executions that this process began or took up, and tells what came of them.

use super::wait::{Waited, wait};
use crate::commands::counted;
use crate::commands::told::{print_json, response_of, tell_end};
use crate::data::Data;
use crate::embedded::Embedded;
use crate::exit;
use crate::progress::say;
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use windlass_dialects::view::{execution_id, status};
use windlass_kernel::{ExecutionId, Phase};
use windlass_store::{Query, Reader, Status};

/// Executions read at a time.
const PAGE: usize = 1_000;

#[derive(Debug, Clone, Copy)]
pub struct Ending<'d> {
    pub data: &'d Data,
    pub json: bool,
}

impl Ending<'_> {
    /// Waits until they rest or somebody interrupts, ends the engine, and tells; the exit code is that of `run`.
    pub fn until_rest(
        &self,
        embedded: Embedded,
        ids: &[ExecutionId],
        signals: &Receiver<i32>,
    ) -> anyhow::Result<ExitCode> {
        let waited = wait(&embedded, self.data, ids, signals);
        if let Ok(Waited::Interrupted(_)) = waited {
            say("interrupted: ending what runs (once more: at once)");
        }
        let stopped = embedded.stop();
        let waited = waited?;
        stopped?;
        match waited {
            Waited::Rested(rested) => {
                self.print(&rested)?;
                self.tell_of_others(ids)?;
                Ok(ExitCode::from(exit::of_all(rested.iter().map(|(_, phase)| *phase))))
            }
            Waited::Interrupted(signal) => {
                self.tell_how_to_resume(ids);
                Ok(ExitCode::from(exit::of_signal(signal)))
            }
        }
    }

    fn tell_how_to_resume(&self, ids: &[ExecutionId]) {
        match ids {
            [id] => say(&format!("carry on with:\n  {}", self.data.resume(*id))),
            _ => say(&format!("carry on with:\n  windlass run --resume{}", self.data.flag())),
        }
    }

    /// Whatever was unfinished in the folder went on meanwhile, as far as it came.
    fn tell_of_others(&self, ids: &[ExecutionId]) -> anyhow::Result<()> {
        let ids: BTreeSet<ExecutionId> = ids.iter().copied().collect();
        let open = open(&mut self.data.read()?)?;
        let others = open.iter().filter(|(id, phase)| !ids.contains(id) && *phase != Phase::Paused).count();
        if others > 0 {
            let others = counted(others, "other execution");
            say(&format!(
                "not ended: {others} in this folder; carry on with:\n  windlass run --resume{}",
                self.data.flag()
            ));
        }
        Ok(())
    }

    fn print(&self, rested: &[(ExecutionId, Phase)]) -> anyhow::Result<()> {
        let mut reader = self.data.read()?;
        for (id, phase) in rested {
            if self.json {
                print_json(&response_of(&mut reader, *id)?)?;
            } else if let [_] = rested {
                tell_end(&mut reader, self.data, *id)?;
            } else {
                writeln!(std::io::stdout(), "{} {}", execution_id(*id), status(*phase))?;
            }
        }
        Ok(())
    }
}

/// All that have not ended, the oldest first.
pub fn open(reader: &mut impl Reader) -> anyhow::Result<Vec<(ExecutionId, Phase)>> {
    let mut query = Query { status: Some(Status::Open), limit: PAGE, ..Query::default() };
    let mut found = Vec::new();
    loop {
        let page = reader.list(&query)?;
        found.extend(page.iter().map(|listed| (listed.execution, listed.phase)));
        query.before = page.last().map(|listed| listed.execution);
        if page.len() < PAGE {
            found.reverse();
            return Ok(found);
        }
    }
}
