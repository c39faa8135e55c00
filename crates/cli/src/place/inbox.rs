//! Changes of an execution in a data folder. If nobody holds the folder, an engine without workers is started for the
//! moment; else the input goes through the inbox of the engine that is there (docs/adr/0010).

use crate::data::Data;
use crate::embedded::{self, Embedded, Workers, now};
use anyhow::{anyhow, bail};
use std::fmt::Display;
use std::time::{Duration, Instant};
use windlass_engine::{Answer, Folder, FolderError, Request};
use windlass_kernel::{ExecutionId, Input};
use windlass_store::sqlite::Sqlite;
use windlass_store::{Letter, Mail, MailId, Reader};
use windlass_views::execution_id;

/// What others are told about the process while it holds the folder.
pub const WHAT: &str = "windlass executions";
/// An engine looks into its inbox ten times a second; one that does not answer for this long is in trouble.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who took the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// An engine of this process, which has no workers and is gone again.
    Here,
    /// Somebody who goes on with it: a server, or another process in the folder.
    ByHolder,
}

pub fn give(data: &Data, id: ExecutionId, input: Input) -> anyhow::Result<Taken> {
    match Folder::hold(data.folder(), WHAT) {
        Ok(folder) => give_here(folder, id, input),
        Err(FolderError::InUse { .. }) => post(data, id, Letter::Input(input)),
        Err(error) => Err(error.into()),
    }
}

fn give_here(folder: Folder, execution: ExecutionId, input: Input) -> anyhow::Result<Taken> {
    let embedded = embedded::in_folder(folder, Workers::None)?;
    let answer = embedded.ask(Request::Give { execution, input, audit: None });
    let stopped = embedded.stop();
    match answer? {
        Answer::Accepted => stopped.map(|()| Taken::Here),
        Answer::Refused(refusal) => Err(refused(execution, refusal)),
        other => bail!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}

/// Through the inbox of whoever holds the data folder.
pub fn post(data: &Data, to: ExecutionId, letter: Letter) -> anyhow::Result<Taken> {
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

pub fn refused(id: ExecutionId, why: impl Display) -> anyhow::Error {
    anyhow!("{} was refused: {why}", execution_id(id))
}
