//! Quarantine at the start of a process. An execution that the last process worked on when it died is suspect; one that was
//! suspect several times without progress, or that hung a thread, is quarantined.

use super::record::{HeldExecution, LastProcess};
use crate::auth::Role;
use crate::database::Database;
use crate::host::now;
use serde_json::json;
use std::collections::BTreeMap;
use windlass_kernel::{ChildResult, ExecutionId, Failure, Input, Millis, Outcome, Parent, codes};
use windlass_store::{
    Audit, DEATHS_MAX, Entry, Letter, Mail, Quarantine, Quarantined as _, Reader as _, Store as _,
    StoreError, StoredMail, Suspect, Tenant, Write,
};
use windlass_views::execution_id;

/// Audit actor for actions that the server takes on its own.
const SERVER: &str = "server";

/// Quarantines executions of the last process, and returns all quarantined executions.
pub(crate) fn judge(
    store: &mut Database,
    last: &LastProcess,
) -> Result<Vec<(ExecutionId, Quarantine)>, StoreError> {
    let mut reader = store.reader()?;
    let known = reader.suspects()?.into_iter().map(|suspect| (suspect.execution, suspect));
    let mut known: BTreeMap<ExecutionId, Suspect> = known.collect();
    let (mut writes, at) = (Vec::new(), now());
    for left in &last.left {
        let standing = reader.outline(left.execution)?;
        let version = standing.as_ref().map_or(0, |standing| standing.version);
        let judged = suspect_of(left, version, known.get(&left.execution), at);
        if let Some(since) = judged.quarantined_at
            && standing.is_none()
        {
            // The execution does not exist yet: its start is refused, and no mark remains.
            known.remove(&left.execution);
            writes.push(entry(Entry::Released { execution: left.execution }));
            writes.extend(refuse_start(&mut reader, &judged, since)?);
            continue;
        }
        log_suspect(&judged);
        let suspected = Entry::Suspect(Box::new(judged.clone()));
        writes.push(entry(match standing.filter(|_| judged.quarantined_at.is_some()) {
            Some(standing) => suspected.audited(audit(standing.tenant, &judged, at)),
            None => suspected,
        }));
        known.insert(left.execution, judged);
    }
    for suspect in known.values().filter(|suspect| suspect.quarantined_at.is_none()) {
        let is_left = last.left.iter().any(|left| left.execution == suspect.execution);
        let version = reader.outline(suspect.execution)?.map(|standing| standing.version);
        if !is_left && version != Some(suspect.version) {
            // It has made progress, or was deleted.
            writes.push(entry(Entry::Released { execution: suspect.execution }));
        }
    }
    store.write(&writes)?;
    Ok(known.into_iter().filter_map(|(id, suspect)| Some((id, suspect.quarantine()?))).collect())
}

fn entry(entry: Entry) -> Write {
    Write::Entry(Box::new(entry))
}

fn audit(tenant: Tenant, suspect: &Suspect, at: Millis) -> Audit {
    Audit {
        tenant,
        at,
        actor: SERVER.to_owned(),
        role: Role::Owner.name().to_owned(),
        action: "execution.quarantine".to_owned(),
        target: execution_id(suspect.execution),
        details: json!({ "reason": suspect.reason, "deaths": suspect.deaths }),
    }
}

fn suspect_of(left: &HeldExecution, version: u64, before: Option<&Suspect>, at: Millis) -> Suspect {
    let before = before.filter(|before| before.version == version || before.quarantined_at.is_some());
    let deaths = before.map_or(0, |before| before.deaths) + 1;
    let is_over = left.hung || deaths >= DEATHS_MAX;
    let since = before.and_then(|before| before.quarantined_at).or(is_over.then_some(at));
    let reason = if left.hung {
        "a thread of the process hung while it worked on the execution".to_owned()
    } else {
        format!("the process died {deaths} times while it worked on the execution, without progress")
    };
    Suspect { execution: left.execution, version, deaths, quarantined_at: since, reason }
}

fn log_suspect(suspect: &Suspect) {
    let Suspect { execution, deaths, quarantined_at, reason, .. } = suspect;
    let execution = execution_id(*execution);
    match quarantined_at {
        Some(_) => {
            tracing::error!(
                execution,
                reason,
                "quarantined an execution; release it with `windlass admin quarantine`"
            )
        }
        None => tracing::warn!(execution, deaths, "the last process died while it worked on an execution"),
    }
}

/// Refuses the start of an execution that kills the process before it begins. Its parent gets a failure of the child.
fn refuse_start(
    reader: &mut <Database as windlass_store::Store>::Reader,
    suspect: &Suspect,
    at: Millis,
) -> Result<Vec<Write>, StoreError> {
    let mail = match reader.inbox_of(suspect.execution, usize::MAX) {
        Ok(mail) => mail,
        // The lane handles unreadable mail.
        Err(error) if error.unreadable().is_some() => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut writes = Vec::new();
    for StoredMail { id, letter, .. } in mail {
        let reason = suspect.reason.clone();
        if let Letter::Start { create, .. } = letter
            && let Some(Parent { execution, run, fence }) = create.parent.clone()
        {
            let failure = Some(Failure::new(codes::EXECUTION_QUARANTINED, reason.clone()));
            let result = ChildResult { outcome: Outcome::Failed, output: Default::default(), failure };
            let input = Input::ChildEnded { run, fence, child: create.id, result };
            let letter = Letter::Input(input);
            writes.push(Write::Accept(Mail { to: execution, letter, answered: false, at }));
        }
        writes.push(Write::Settle { mail: id, refused: Some(reason) });
    }
    Ok(writes)
}
