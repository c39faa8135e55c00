//! What this process knows of a tenant's secrets: every value that was opened or that is in the vault, so that none of
//! them leaves the worker (K9). What another tenant keeps secret changes nothing here.

use crate::failure::{failure, invalid};
use crate::pipeline::CallResult;
use crate::rights::Rights;
use crate::vault::{Vault, VaultError};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_protocol::{Failure, Outcome, Report};
use windlass_secrets::{ENGINE_VARIABLES, Redactor, Zeroizing, check_value};

/// In front of the name of a variable, in a handle. No secret has a colon in its name.
const ENVIRONMENT: &str = "env:";

/// Shared by everything of one tenant that runs in the worker.
#[derive(Debug)]
pub(crate) struct Keeper {
    tenant: String,
    vault: Arc<dyn Vault>,
    rights: Arc<dyn Rights>,
    known: Mutex<Known>,
}

/// Values are never forgotten while the process lives: an old one may still stand in a file.
#[derive(Default)]
struct Known {
    values: Vec<Zeroizing<String>>,
    redactor: Arc<Redactor>,
    /// Of the vault, when its values were last read.
    changes: Option<u64>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} values)", self.values.len())
    }
}

impl Known {
    fn learn(&mut self, values: impl IntoIterator<Item = Zeroizing<String>>) {
        let before = self.values.len();
        for value in values {
            if check_value(&value).is_ok() && !self.values.contains(&value) {
                self.values.push(value);
            }
        }
        if self.values.len() > before {
            self.redactor = Arc::new(Redactor::new(self.values.iter().map(|value| value.as_str())));
        }
    }
}

impl Keeper {
    pub(crate) fn new(tenant: String, vault: Arc<dyn Vault>, rights: Arc<dyn Rights>) -> Keeper {
        Keeper { tenant, vault, rights, known: Mutex::default() }
    }

    /// What a handle stands for: the name of a secret, or a variable of the worker.
    pub(crate) fn open(&self, handle: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        let value = match handle.strip_prefix(ENVIRONMENT) {
            Some(variable) => self.variable(variable)?,
            None => self.vault.open(&self.tenant, handle).map_err(|error| refused(&error))?,
        };
        self.learn([value.clone()]);
        Ok(value)
    }

    fn variable(&self, name: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        if self.rights.may_read_variable(&self.tenant, name) {
            return variable_of_worker(name);
        }
        // Whether there is such a variable is not told either.
        let message = format!(
            "definitions of this tenant may not read the variable `{name}`; store the value as a secret, or list the \
             variable in the setting `env-secrets` of the server"
        );
        Err(failure("policy", "PERMISSION_DENIED", message))
    }

    /// Asked before every call.
    pub(crate) fn may_run_programs(&self) -> bool {
        self.rights.may_run_programs(&self.tenant)
    }

    pub(crate) fn learn(&self, values: impl IntoIterator<Item = Zeroizing<String>>) {
        self.lock().learn(values);
    }

    /// Of what is known now.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.lock().redactor)
    }

    /// Reads the values of the vault if there are others than before. A vault that cannot be read gave no step a value
    /// either.
    pub(crate) fn refresh(&self) -> Arc<Redactor> {
        let changes = self.vault.changes().ok();
        let mut known = self.lock();
        let is_old = changes.is_none() || known.changes != changes;
        if is_old && let Ok(values) = self.vault.values(&self.tenant) {
            known.learn(values);
            known.changes = changes;
        }
        Arc::clone(&known.redactor)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of a variable.
pub(crate) fn variable_handle(name: &str) -> String {
    format!("{ENVIRONMENT}{name}")
}

fn variable_of_worker(name: &str) -> Result<Zeroizing<String>, Box<Failure>> {
    if ENGINE_VARIABLES.contains(&name) {
        return Err(invalid(format!("`{name}` is the engine's own; steps cannot read it")));
    }
    let found = std::env::var(name).map(Zeroizing::new);
    let missing = |_| {
        let message = format!(
            "the worker has no variable `{name}`, or it is no text: set it where the worker is started"
        );
        failure("validation", "RESOURCE_NOT_FOUND", message)
    };
    let value = found.map_err(missing)?;
    check_value(&value)
        .map_err(|error| invalid(format!("the variable `{name}` cannot be a secret: {error}")))?;
    Ok(value)
}

fn refused(error: &VaultError) -> Box<Failure> {
    match error {
        VaultError::Missing(_) => failure("validation", "RESOURCE_NOT_FOUND", error.to_string()),
        VaultError::Unusable(_) => failure("auth", "SECRET_UNUSABLE", error.to_string()),
    }
}

/// Before rules see it.
pub(crate) fn redact_call(redactor: &Redactor, called: &mut CallResult) {
    redactor.fields(&mut called.facts);
    match &mut called.outcome {
        Ok(result) => redactor.value(result),
        Err(failure) => redact_failure(redactor, failure),
    }
}

/// Before it leaves.
pub(crate) fn redact_report(redactor: &Redactor, report: &mut Report) {
    redactor.fields(&mut report.patch);
    redactor.fields(&mut report.metadata);
    match &mut report.outcome {
        Outcome::Done { output } => redactor.value(output),
        Outcome::Failed(failure) => redact_failure(redactor, failure),
        Outcome::Stopped => {}
        Outcome::Later { cursor, .. } => redact_cursor(redactor, cursor),
        Outcome::Child { definition, inputs, cursor } => {
            [definition, inputs].into_iter().for_each(|value| redactor.value(value));
            redact_cursor(redactor, cursor);
        }
    }
}

fn redact_failure(redactor: &Redactor, failure: &mut Failure) {
    for text in [&mut failure.class, &mut failure.code, &mut failure.message] {
        if let std::borrow::Cow::Owned(redacted) = redactor.text(text) {
            *text = redacted;
        }
    }
    redactor.value(&mut failure.details);
}

/// Parts of a cursor that hold what the run learned; the others are the definition's words and counts, and a run could
/// not go on without them.
const LEARNED: [&str; 7] = ["args", "prev", "results", "iter", "ctx", "memo", "counted"];

/// Where the run stands, before it leaves.
pub(crate) fn redact_cursor(redactor: &Redactor, cursor: &mut Value) {
    let fields = cursor.as_object_mut().into_iter().flatten();
    let learned = fields.filter(|(key, _)| LEARNED.contains(&key.as_str()));
    learned.for_each(|(_, value)| redactor.value(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cursor_keeps_its_own_words_and_loses_values() {
        let redactor = Redactor::new(["results", "fetch"]);
        let mut cursor = json!({
            "version": 1, "at": "fetch", "tries": { "fetch": 1 }, "calls": 1,
            "prev": "the results", "results": { "other": ["fetch it"] }, "ctx": { "a": "results" },
        });
        redact_cursor(&redactor, &mut cursor);
        let expected = json!({
            "version": 1, "at": "fetch", "tries": { "fetch": 1 }, "calls": 1,
            "prev": "the [redacted]", "results": { "other": ["[redacted] it"] }, "ctx": { "a": "[redacted]" },
        });
        assert_eq!(cursor, expected);
    }

    #[test]
    fn a_report_and_a_call_lose_values_wherever_they_stand() {
        let redactor = Redactor::new(["hunter22"]);
        let mut failed = failure("unknown", "X", "hunter22 is wrong");
        failed.details = json!({ "stderr": "hunter22", "hunter22": 1 });
        let mut called = CallResult { outcome: Err(failed.clone()), facts: Default::default() };
        called.facts.insert("http".to_owned(), json!({ "location": "/?t=hunter2%32" }));
        redact_call(&redactor, &mut called);
        let mut told = format!("{called:?}");
        let unit = windlass_protocol::Unit { execution: 1, run: 1, fence: 1 };
        for outcome in [
            Outcome::Failed(*failed),
            Outcome::Done { output: json!(["hunter22"]) },
            Outcome::Later { delay_ms: 1, cursor: json!({ "prev": "hunter22" }) },
        ] {
            let patch = json!({ "token": "aHVudGVyMjI=" }).as_object().cloned().unwrap_or_default();
            let mut report = Report { unit, outcome, patch, metadata: Default::default() };
            redact_report(&redactor, &mut report);
            told.push_str(&format!("{report:?}"));
        }
        assert!(told.contains("[redacted]") && !told.contains("hunter2") && !told.contains("aHVu"), "{told}");
    }

    #[test]
    fn the_engines_own_variables_are_not_opened() {
        let keeper = Keeper::new(
            "default".to_owned(),
            Arc::new(crate::vault::NoVault),
            Arc::new(crate::rights::EveryRight),
        );
        for variable in ENGINE_VARIABLES {
            let refused = keeper.open(&variable_handle(variable)).unwrap_err();
            assert!(refused.message.contains("the engine's own"), "{}", refused.message);
        }
    }
}
