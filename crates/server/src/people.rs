//! Permission to answer a task that waits for a person, and to see its token.

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::loaded::LoadedExecution;
use crate::problem::Problem;
use serde_json::Value;
use windlass_kernel::RunState;
use windlass_kernel::net::{Step, Work};
use windlass_views::Waiting;

impl Caller {
    /// Reports whether a task with these approvers is meant for the caller: it names the caller, one of its roles, or
    /// no one.
    #[must_use]
    pub fn is_asked(&self, approvers: &Value) -> bool {
        let names = approvers.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_named = |name: &Value| {
            *name == *self.id || *name == self.role.name() || self.roles.iter().any(|role| *name == **role)
        };
        names.is_empty() || names.iter().any(is_named)
    }

    /// Refuses with 403 unless the caller may answer a task with these approvers. An owner or admin may answer every task.
    pub fn may_answer(&self, approvers: &Value) -> Result<(), Problem> {
        self.may(Permission::Execute)?;
        if self.is_asked(approvers) || self.role.may(Permission::Administer) {
            return Ok(());
        }
        let names: Vec<&str> = approvers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        Err(Problem::forbidden(format!("only {} may complete this step", names.join(", "))))
    }

    /// Returns every role that the caller has, the built-in one first.
    #[must_use]
    pub fn all_roles(&self) -> Vec<String> {
        std::iter::once(self.role.name().to_owned()).chain(self.roles.iter().cloned()).collect()
    }
}

/// Returns the approvers of a task; null if the step asks for a confirmation only.
pub(crate) fn approvers_of(
    loaded: &LoadedExecution<'_>,
    step: &Step,
    question: &Value,
) -> Result<Value, Problem> {
    if !matches!(step.work, Work::Approval { .. }) {
        return Ok(Value::Null);
    }
    // A large question is stored as an artifact.
    match windlass_artifact::key(question) {
        Some(key) => (loaded.sources.open)(key)
            .map(|question| question["approvers"].clone())
            .ok_or_else(|| Problem::internal("the question of an approval is missing")),
        None => Ok(question["approvers"].clone()),
    }
}

/// Adds completion tokens to what an execution waits for, as far as the caller may answer.
pub(crate) fn show_tokens(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    waiting: &mut [Waiting],
) -> Result<(), Problem> {
    for waits in waiting {
        let Some(task) = waits.task else { continue };
        let own = loaded.history.state().run(task.run).filter(|_| task.execution == loaded.facts.execution);
        let approvers = match (own, &waits.approvers) {
            (Some(run), _) => match &run.state {
                RunState::Manual { output, .. } => approvers_of(loaded, loaded.net.step(run.step), output)?,
                _ => continue,
            },
            // The question of a sub-execution may be large; its own view shows the token.
            (None, None) if waits.message.is_some() => continue,
            (None, approvers) => approvers.clone().unwrap_or_default(),
        };
        if caller.may_answer(&approvers).is_ok() {
            // Without the key, the execution is shown all the same; the error is in the log.
            waits.completion_token = app.completion.of(&caller.tenant, task).ok().flatten();
        }
    }
    Ok(())
}
