//! Plans of retries: an ended execution, read with its journal, and the records that a new execution takes over from it
//! (R12). The plan is made by the thread that reads the journal, so that a long journal does not block a lane; a
//! preview is the same plan.

use crate::reading::journal;
use crate::wake::{NotRetried, Refusal};
use std::sync::Arc;
use windlass_kernel::net::Join;
use windlass_kernel::{Net, Record, Role, RunChange, RunId, StepId, any_of};
use windlass_retry::{RefusedStep, RetryPlan, RetryPoint, can_be_retried, plan_retry};
use windlass_store::{Reader, Retry, RetryFrom, StoreError, Stored, StoredDefinition};

/// An ended execution with the plan of its retry.
#[derive(Debug)]
pub struct Past {
    pub stored: Stored,
    /// The net of the ended execution.
    pub old: Arc<Net>,
    /// The net of the retry.
    pub net: Arc<Net>,
    /// The definition that replaces that of the ended execution.
    pub definition: Option<StoredDefinition>,
    /// A plan with refused steps may not begin.
    pub plan: Result<RetryPlan, Refusal>,
}

/// Reads an ended execution and plans its retry; `None` if there is no such execution. `other` is the Net of the retry, if
/// it is neither that of the ended execution nor that of the definition.
pub fn plan(
    reader: &mut impl Reader,
    retry: &Retry,
    other: Option<Arc<Net>>,
) -> Result<Option<Past>, StoreError> {
    let Some(stored) = reader.load(retry.of)? else { return Ok(None) };
    let Some(old) = reader.net(stored.state.head.net)?.map(Arc::new) else {
        return Err(StoreError::Corrupt(format!("the net of execution {} is missing", retry.of)));
    };
    let (mut net, mut definition) = (other.clone().unwrap_or_else(|| old.clone()), None);
    if let Some(id) = retry.definition {
        definition = reader.definition(id)?.filter(|found| found.tenant == stored.origin.tenant);
        let found = definition.as_ref().map(|found| reader.net(found.net)).transpose()?.flatten();
        match found {
            Some(_) if other.is_some() => {}
            Some(found) => net = Arc::new(found),
            None => {
                let plan = Err(Refusal::NoDefinition);
                return Ok(Some(Past { stored, old, net, definition, plan }));
            }
        }
    }
    let records = journal(reader, retry.of)?;
    let plan = plan_records(&old, &records, &net, retry);
    Ok(Some(Past { stored, old, net, definition, plan }))
}

fn plan_records(old: &Net, journal: &[Record], new: &Net, retry: &Retry) -> Result<RetryPlan, Refusal> {
    let from = match &retry.from {
        None => None,
        Some(from) => {
            // The error that it has not ended takes precedence over a wrong step.
            can_be_retried(journal, Some(RetryPoint::Step(StepId(0))))?;
            Some(find_point(old, new, journal, from)?)
        }
    };
    Ok(plan_retry(old, journal, new, from)?)
}

impl Past {
    /// Returns the plan, unless completed work would be lost.
    pub(crate) fn take_plan(&mut self) -> Result<RetryPlan, Refusal> {
        let plan = std::mem::replace(&mut self.plan, Err(Refusal::NoDefinition))?;
        if plan.refused.is_empty() {
            return Ok(plan);
        }
        let named = |(step, why): &(StepId, RefusedStep)| (self.old.step(*step).name.clone(), *why);
        Err(NotRetried::Lost(plan.refused.iter().map(named).collect()).into())
    }
}

fn find_point(old: &Net, new: &Net, journal: &[Record], from: &RetryFrom) -> Result<RetryPoint, NotRetried> {
    step(new, &from.step)?;
    match old.policy().join {
        Join::Each => firing(old, journal, from).map(RetryPoint::Firing),
        Join::All | Join::AnyLive if from.firing.is_some() => Err(NotRetried::NoFirings),
        Join::All | Join::AnyLive => step(old, &from.step).map(RetryPoint::Step),
    }
}

fn step(net: &Net, name: &str) -> Result<StepId, NotRetried> {
    net.find(name).ok_or_else(|| {
        let known = net.steps().map(|(_, step)| step.name.clone()).collect();
        NotRetried::NoStep { step: name.to_owned(), known }
    })
}

/// One firing of the step that a retry begins at.
#[derive(Clone, Copy)]
struct Firing {
    run: RunId,
    /// End of the firing; None if it was skipped.
    role: Option<FiringRole>,
    failed: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum FiringRole {
    Routed,
    Final,
}

/// Finds the named firing; without a number the first that failed and was not handled, else the newest.
fn firing(net: &Net, journal: &[Record], from: &RetryFrom) -> Result<RunId, NotRetried> {
    let firings = firings(journal, step(net, &from.step)?);
    let step = from.step.clone();
    let fired = u32::try_from(firings.len()).unwrap_or(u32::MAX);
    let chosen = match from.firing {
        Some(number) => number.checked_sub(1).and_then(|place| firings.get(place as usize)),
        None => firings.iter().find(|firing| firing.failed).or(firings.last()),
    };
    match (chosen, from.firing) {
        (Some(Firing { run, role: Some(FiringRole::Routed), .. }), _) => Ok(*run),
        (Some(Firing { role: Some(FiringRole::Final), .. }), _) => Err(NotRetried::Final { step }),
        (Some(_), number) => Err(NotRetried::Skipped { step, firing: number.unwrap_or(fired) }),
        (None, Some(firing)) if fired > 0 => Err(NotRetried::NoFiring { step, firing, fired }),
        (None, _) => Err(NotRetried::NeverFired { step }),
    }
}

/// Firings in the order in which views number them.
fn firings(journal: &[Record], of: StepId) -> Vec<Firing> {
    let mut found: Vec<Firing> = Vec::new();
    for record in journal {
        let Some((run, change)) = record.event.run_change() else { continue };
        match change {
            RunChange::Fired { step, role, .. } if step == of => {
                let role = match role {
                    Role::Routed => FiringRole::Routed,
                    Role::Final => FiringRole::Final,
                    Role::Iteration { .. } | Role::Hook { .. } | Role::Tool { .. } => continue,
                };
                found.push(Firing { run, role: Some(role), failed: false });
            }
            RunChange::Skipped(step, ..) if step == of => {
                found.push(Firing { run, role: None, failed: false });
            }
            RunChange::Failed { handled: false, .. } => {
                found.iter_mut().filter(|firing| firing.run == run).for_each(|firing| firing.failed = true);
            }
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual ChildStarted
                Returned Lost Retried Done Failed Dropped Routed AgentDecided Internal] => {}
        }
    }
    found
}
