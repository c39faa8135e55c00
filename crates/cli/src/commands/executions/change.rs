//! Commands that change an execution. If nobody holds the data folder, an engine without workers is started for the
//! moment; else the input goes through the inbox of the engine that is there (docs/adr/0010).

use crate::commands::run::inputs::pair;
use crate::commands::told::{how_to_move_on, net_of, print_json, stored};
use crate::data::Data;
use crate::embedded::{self, Embedded, Workers, now};
use crate::exit::Usage;
use crate::ids;
use crate::progress::say;
use anyhow::{anyhow, bail};
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_dialects::view::{execution_id, status};
use windlass_engine::{Answer, Folder, FolderError, Request};
use windlass_kernel::{ExecutionId, Input, Phase};
use windlass_store::sqlite::Sqlite;
use windlass_store::{Letter, Mail, MailId, Reader};

/// Who does it, as the journal tells it. Whoever can write to the data folder is its owner.
pub(super) const BY: &str = "owner";
/// What others are told about the process while it holds the folder.
pub(super) const WHAT: &str = "windlass executions";
/// An engine looks into its inbox ten times a second; one that does not answer for this long is in trouble.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Cancel an execution
#[derive(Debug, clap::Args)]
pub struct Cancel {
    #[command(flatten)]
    change: Change,
    /// Why, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Give up compensation too
    #[arg(long)]
    force: bool,
    /// Undo what was done, where the definition says how
    #[arg(long, conflicts_with = "force")]
    compensate: bool,
}

/// Hold an execution: what runs ends, nothing new begins
#[derive(Debug, clap::Args)]
pub struct Pause {
    #[command(flatten)]
    change: Change,
    /// Why, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

/// Release an execution that is held
#[derive(Debug, clap::Args)]
pub struct Resume {
    #[command(flatten)]
    change: Change,
}

/// Set keys of an execution's context; gates that look at them are asked again
#[derive(Debug, clap::Args)]
pub struct Patch {
    #[command(flatten)]
    change: Change,
    /// VALUE is JSON, or else a text
    #[arg(value_name = "KEY=VALUE", required = true)]
    keys: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct Change {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Cancel {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let (reason, force, compensate) = (self.reason.clone(), self.force, self.compensate);
        let cancel = windlass_kernel::Cancel { by: BY.to_owned(), reason, force, compensate };
        self.change.give(data, Input::Cancel(cancel))
    }
}

impl Pause {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        self.change.give(data, Input::Hold { by: BY.to_owned(), reason: self.reason.clone() })
    }
}

impl Resume {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        self.change.give(data, Input::Resume { by: BY.to_owned() })
    }
}

impl Patch {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let pairs: Result<Vec<_>, Usage> = self.keys.iter().map(|text| pair("patch", text)).collect();
        let patch = pairs?.into_iter().map(|(key, value)| (key, Arc::new(value))).collect();
        self.change.give(data, Input::Patch { patch, by: BY.to_owned() })
    }
}

/// Who took the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// An engine of this process, which has no workers and is gone again.
    Here,
    ByHolder,
}

impl Change {
    pub(super) fn give(&self, data: &Data, input: Input) -> anyhow::Result<ExitCode> {
        let id = ids::find(&mut data.read()?, &self.id)?;
        let taken = match Folder::hold(data.folder(), WHAT) {
            Ok(folder) => give_here(folder, id, input)?,
            Err(FolderError::InUse { .. }) => post(data, id, Letter::Input(input))?,
            Err(error) => return Err(error.into()),
        };
        let phase = stored(&mut data.read()?, id)?.state.phase();
        if self.json {
            print_json(&json!({ "executionId": execution_id(id), "status": status(phase) }))?;
        } else {
            writeln!(std::io::stdout(), "{} {}", execution_id(id), status(phase))?;
        }
        tell_who_goes_on(data, id, taken)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An engine that was there for the moment only leaves the rest to somebody else.
pub(super) fn tell_who_goes_on(data: &Data, id: ExecutionId, taken: Taken) -> anyhow::Result<()> {
    let mut reader = data.read()?;
    let state = stored(&mut reader, id)?.state;
    match (taken, state.phase()) {
        (_, Phase::Ended(_)) | (Taken::ByHolder, _) => {}
        (Taken::Here, Phase::Paused) => {
            say(&how_to_move_on(&net_of(&mut reader, &state)?, &state, data));
        }
        (Taken::Here, _) => {
            say(&format!("nobody works on it at the moment; carry on with:\n  {}", data.resume(id)));
        }
    }
    Ok(())
}

fn give_here(folder: Folder, execution: ExecutionId, input: Input) -> anyhow::Result<Taken> {
    let embedded = embedded::in_folder(folder, Workers::None)?;
    let answer = embedded.ask(Request::Give { execution, input });
    let stopped = embedded.stop();
    match answer? {
        Answer::Accepted => stopped.map(|()| Taken::Here),
        Answer::Refused(refusal) => Err(refused(execution, refusal)),
        other => bail!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}

/// Through the inbox of whoever holds the data folder.
pub(super) fn post(data: &Data, to: ExecutionId, letter: Letter) -> anyhow::Result<Taken> {
    let about = match &letter {
        Letter::Retry(retry) => retry.of,
        Letter::Input(_) | Letter::Start { .. } | Letter::Ended { .. } => to,
    };
    let mail = Mail { to, letter, answered: true, at: now() };
    let posted = Sqlite::post(&Folder::store(data.folder()), &mail)?;
    let mut keeper = None;
    let answer = wait_for_answer(data, posted, &mut keeper)?;
    let taken = if keeper.is_some() { Taken::Here } else { Taken::ByHolder };
    keeper.map_or(Ok(()), Embedded::stop)?;
    match answer {
        Ok(()) => Ok(taken),
        Err(why) => Err(refused(about, why)),
    }
}

/// A holder may end before it looks into its inbox. Then `keeper` becomes an engine of this process, which does.
fn wait_for_answer(
    data: &Data,
    mail: MailId,
    keeper: &mut Option<Embedded>,
) -> anyhow::Result<Result<(), String>> {
    let mut reader = data.read()?;
    let until = Instant::now() + ANSWER_MAX;
    loop {
        if let Some(answer) = reader.answer(mail)? {
            return Ok(answer);
        }
        let holder = Folder::holder(data.folder())?;
        if holder.is_none() {
            match Folder::hold(data.folder(), WHAT) {
                Ok(folder) => *keeper = Some(embedded::in_folder(folder, Workers::None)?),
                // Somebody was faster, and looks into the inbox too.
                Err(FolderError::InUse { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if Instant::now() >= until {
            let who = holder.unwrap_or_else(|| "nobody".to_owned());
            bail!(
                "no answer after {} s; the data folder is held by {who}. The request is kept and takes effect as \
                 soon as an engine reads it",
                ANSWER_MAX.as_secs()
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

pub(super) fn refused(id: ExecutionId, why: impl Display) -> anyhow::Error {
    anyhow!("{} was refused: {why}", execution_id(id))
}
