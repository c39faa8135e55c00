//! `windlass admin quarantine`: executions that are set aside because they stopped the process or cannot be read.

use crate::api::{Client, Need};
use crate::commands::report::print_json;
use crate::data::Data;
use crate::embedded::now;
use crate::exit::Usage;
use crate::progress::say;
use crate::{format, ids};
use serde_json::{Value, json};
use std::process::ExitCode;
use windlass_engine::{EngineAnswer, Fatal, Folder, Now, give_alone};
use windlass_kernel::{
    Cancel as Cancelling, ChildResult, ExecutionId, Failure, Input, Outcome, RunState, any_of, codes,
};
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::host::{open_store, seed};
use windlass_store::sqlite::Sqlite;
use windlass_store::{
    Audit, Entry, ExecutionOutline, Letter, Mail, Quarantined as _, Reader as _, Store as _, StoreError,
    Suspect, Write,
};
use windlass_views::{execution_id, time};

/// The name of this process for others while it holds the folder.
const WHAT: &str = "windlass admin quarantine";
const OWNER: &str = "owner";

/// List, release or cancel executions in quarantine, which do not run
///
/// An execution is quarantined when the process died several times while it worked on it, when a thread did not return
/// from it, or when its rows cannot be read. All other executions continue.
#[derive(Debug, clap::Subcommand)]
pub enum Quarantine {
    /// List quarantined executions; also while a server runs
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run one again from the next start on; no process may hold the folder
    Release {
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Cancel one without running it; no process may hold the folder
    ///
    /// It is cancelled with force: completed work is not undone, and its final step does not run. If its rows cannot be
    /// read, it is abandoned: listed as cancelled, with its journal unchanged.
    Cancel {
        #[arg(value_name = "ID")]
        id: String,
        /// Do not even decide the cancel: for an execution that also stops this command
        #[arg(long)]
        abandon: bool,
    },
}

impl Quarantine {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        match self {
            Quarantine::List { json } => list(data, *json)?,
            Quarantine::Release { id } => release(data, id)?,
            Quarantine::Cancel { id, abandon } => cancel(data, id, *abandon)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(data: &Data, json: bool) -> anyhow::Result<()> {
    let suspects = data.read()?.suspects()?;
    let quarantined: Vec<&Suspect> = suspects.iter().filter(|one| one.quarantined_at.is_some()).collect();
    if json {
        let executions: Vec<Value> = quarantined.into_iter().map(to_json).collect();
        return print_json(&json!({ "executions": executions }));
    }
    for one in &quarantined {
        let since = one.quarantined_at.map(time).unwrap_or_default();
        println!("{}  {since}  {}", execution_id(one.execution), format::plain(&one.reason));
    }
    if quarantined.is_empty() {
        say("no execution is quarantined");
    }
    Ok(())
}

fn to_json(suspect: &Suspect) -> Value {
    json!({
        "executionId": execution_id(suspect.execution),
        "reason": suspect.reason,
        "since": suspect.quarantined_at.map(time),
        "deaths": suspect.deaths,
    })
}

/// A folder that this process holds, and a quarantined execution in it.
struct QuarantinedExecution {
    store: Sqlite,
    execution: ExecutionId,
    standing: ExecutionOutline,
    /// The last field: the lock is released after the store is closed.
    _folder: Folder,
}

impl QuarantinedExecution {
    fn take(data: &Data, id: &str) -> anyhow::Result<QuarantinedExecution> {
        let mut reader = data.read()?;
        let execution = find(data, &reader.suspects()?, id)?;
        drop(reader);
        let folder = Folder::hold(data.folder(), WHAT)?;
        let store = open_store(&folder, EngineSecrets::from_environment())?;
        let mut reader = store.reader()?;
        let is_quarantined =
            reader.suspect(execution)?.is_some_and(|suspect| suspect.quarantined_at.is_some());
        match reader.outline(execution)? {
            Some(standing) if is_quarantined => {
                Ok(QuarantinedExecution { store, execution, standing, _folder: folder })
            }
            _ => {
                let what = format!("{} is not quarantined", execution_id(execution));
                let hint = "`windlass admin quarantine list` lists those that are; `windlass executions cancel` cancels others";
                Err(Usage::new(what).hint(hint).into())
            }
        }
    }

    fn audit(&self, action: &str) -> Audit {
        Audit {
            tenant: self.standing.tenant.clone(),
            at: now(),
            actor: OWNER.to_owned(),
            role: OWNER.to_owned(),
            action: action.to_owned(),
            target: execution_id(self.execution),
            details: json!({ "by": WHAT }),
        }
    }
}

/// Returns the execution that a text names. A complete id may be of an execution that no list can show any more.
fn find(data: &Data, suspects: &[Suspect], text: &str) -> anyhow::Result<ExecutionId> {
    let bare = text.strip_prefix("exec_").unwrap_or(text).replace('-', "").to_ascii_lowercase();
    let named = suspects.iter().find(|suspect| suspect.execution.to_string() == bare);
    match named {
        Some(suspect) => Ok(suspect.execution),
        None => ids::find(&Client::connect_folder(data, None, WHAT, Need::Read)?, text),
    }
}

fn release(data: &Data, id: &str) -> anyhow::Result<()> {
    let mut held = QuarantinedExecution::take(data, id)?;
    let entry = Entry::Released { execution: held.execution }.audited(held.audit("execution.release"));
    held.store.write(&[Write::Entry(Box::new(entry))])?;
    say(&format!("{} runs again from the next start on", execution_id(held.execution)));
    Ok(())
}

fn cancel(data: &Data, id: &str, abandon: bool) -> anyhow::Result<()> {
    let mut held = QuarantinedExecution::take(data, id)?;
    let shown = execution_id(held.execution);
    if abandon {
        return abandoned(&mut held);
    }
    let reason = "cancelled while it was quarantined".to_owned();
    let cancel = Cancelling { by: OWNER.to_owned(), reason, force: true, compensate: false };
    let input = (Input::Cancel(cancel), Some(Box::new(held.audit("execution.cancel"))));
    let at = Now { wall: now(), steady: 0 };
    match give_alone(&mut held.store, held.execution, input, (seed(), at)) {
        Ok(EngineAnswer::Accepted) => {
            let entry = Entry::Released { execution: held.execution };
            held.store.write(&[Write::Entry(Box::new(entry))])?;
            say(&format!("{shown} is cancelled"));
            Ok(())
        }
        Ok(EngineAnswer::Refused(refusal)) => anyhow::bail!("{shown} cannot be cancelled: {refusal}"),
        Ok(any_of![EngineAnswer: Defined Started Rested Reply Kept Load Group Stopping]) => {
            anyhow::bail!("{shown} cannot be cancelled: the engine returned an unexpected answer")
        }
        Err(Fatal::Store(error @ (StoreError::Undecodable(_) | StoreError::Unreadable { .. }))) => {
            say(&format!("{error}"));
            abandoned(&mut held)
        }
        Err(fatal) => Err(fatal.into()),
    }
}

fn abandoned(held: &mut QuarantinedExecution) -> anyhow::Result<()> {
    let mut writes = Vec::new();
    if let Some(parent) = held.standing.parent {
        writes.extend(notify_parent(&held.store, parent, held.execution)?);
    }
    let entry = Entry::Abandoned { execution: held.execution, at: now() };
    writes.push(Write::Entry(Box::new(entry.audited(held.audit("execution.abandon")))));
    held.store.write(&writes)?;
    say(&format!("{} is abandoned: it does not run any more", execution_id(held.execution)));
    Ok(())
}

/// Reports the end of the execution to a parent that waits for it.
fn notify_parent(store: &Sqlite, parent: ExecutionId, child: ExecutionId) -> anyhow::Result<Option<Write>> {
    let Some(stored) = store.reader()?.load(parent).ok().flatten() else { return Ok(None) };
    let mut waits = stored.state.runs.iter().filter_map(|(run, step_run)| match step_run.state {
        RunState::Child { fence, child: of, .. } if of == child => Some((*run, fence)),
        _ => None,
    });
    let Some((run, fence)) = waits.next() else { return Ok(None) };
    let failure =
        Some(Failure::new(codes::CANCELLED, "the execution was abandoned while it was quarantined"));
    let result = ChildResult { outcome: Outcome::Cancelled, output: Default::default(), failure };
    let letter = Letter::Input(Input::ChildEnded { run, fence, child, result });
    Ok(Some(Write::Accept(Mail { to: parent, letter, answered: false, at: now() })))
}
