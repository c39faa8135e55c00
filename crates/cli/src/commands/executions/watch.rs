//! `windlass executions watch`, and the parts that all commands share that follow executions.

use crate::api::{Client, follow, get_execution};
use crate::commands::failure::{FailureReport, Files};
use crate::commands::report::{report_failures, title};
use crate::progress::{Progress, TICK, say};
use crate::{exit, ids};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_views::ProgressState;

/// Watch an execution until it has ended; the exit codes are those of `run`
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
}

impl Watch {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let id = ids::find(client, &self.id)?;
        say(&title(&get_execution(client, id)?));
        let mut progress = Progress::new(follow(client, id)?, client.flag());
        let mut watching = Watching::new(true);
        loop {
            progress.tick()?;
            if watching.is_over(progress.state()) {
                let follower = progress.end()?;
                let (files, debug) = (&Files::new(), false);
                report_failures(FailureReport { client, files, debug }, &get_execution(client, id)?);
                return Ok(ExitCode::from(exit::of_status(follower.state().status.word())));
            }
            watching.once(|| client.report_idle(id));
            watching.rest();
        }
    }
}

/// Repeats a poll until the watch ends, or polls once.
#[derive(Debug)]
pub struct Watching {
    follows: bool,
    said: bool,
}

impl Watching {
    pub fn new(follows: bool) -> Watching {
        Watching { follows, said: false }
    }

    pub fn is_over(&self, state: &ProgressState) -> bool {
        !self.follows || state.status.is_ended()
    }

    /// Prints a message once, if the watch lasts.
    pub fn once(&mut self, say: impl FnOnce()) {
        if !std::mem::replace(&mut self.said, true) {
            say();
        }
    }

    pub fn rest(&self) {
        std::thread::sleep(TICK);
    }
}
