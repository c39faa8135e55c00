//! `windlass executions watch`, and what all that follow have in common.

use crate::commands::told::title;
use crate::data::Data;
use crate::progress::{Progress, TICK, say};
use crate::{exit, ids};
use std::process::ExitCode;
use windlass_engine::Folder;
use windlass_kernel::{Execution, ExecutionId};
use windlass_server::follow::Follower;

/// Watch an execution until it has ended; the exit code is that of `run`
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
}

impl Watch {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let mut reader = data.read()?;
        let id = ids::find(&mut reader, &self.id)?;
        say(&title(&mut reader, id)?);
        let mut progress = Progress::new(Follower::new(reader, id)?);
        let mut watching = Watching::new(true);
        loop {
            progress.tick()?;
            if watching.is_over(progress.state()) {
                let follower = progress.end()?;
                return Ok(ExitCode::from(exit::of_phase(follower.state().phase())));
            }
            watching.once(|| nobody_works(data, id));
            watching.rest();
        }
    }
}

/// Looks again and again, or once.
#[derive(Debug)]
pub struct Watching {
    follows: bool,
    said: bool,
}

impl Watching {
    pub fn new(follows: bool) -> Watching {
        Watching { follows, said: false }
    }

    pub fn is_over(&self, state: &Execution<'_>) -> bool {
        !self.follows || state.phase().is_ended()
    }

    /// Said when the watch turns out to last.
    pub fn once(&mut self, say: impl FnOnce()) {
        if !std::mem::replace(&mut self.said, true) {
            say();
        }
    }

    pub fn rest(&self) {
        std::thread::sleep(TICK);
    }
}

/// Who waits for something to happen should know when nothing can.
pub fn nobody_works(data: &Data, id: ExecutionId) {
    if let Ok(None) = Folder::holder(data.folder()) {
        say(&format!("nobody works on it at the moment; carry on with:\n  {}", data.resume(id)));
    }
}
