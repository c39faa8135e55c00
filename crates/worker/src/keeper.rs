//! The secrets that one unit of work has opened. None of them may leave the worker (K9).
//!
//! A keeper belongs to one unit and is dropped with it. It has the values that the unit itself opened or obtained, and
//! no other secrets of the tenant: redaction reveals something about the values that are searched for, so the output
//! of a step must not be searched for values that it has no right to.
//!
//! Steps of an execution that a worker holds as a whole share a folder, so one step can print a value of another. Their outputs
//! are searched for the values of all of them.

use crate::claim::Claim;
use crate::excerpt::{settle, settle_value};
use crate::failure::{failure, invalid};
use crate::pipeline::CallResult;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_protocol::{Failure, Outcome, Report, codes};
use windlass_secrets::{ENGINE_VARIABLES, Redactor, VALUE_MAX, Zeroizing, check_value};

/// Prefix of the name of a variable, in a handle. Names of secrets have no colon.
const ENVIRONMENT: &str = "env:";

/// Maximum number of values of one unit. A step with more of them does the work of several steps; every output is
/// searched for all of them.
const VALUES_MAX: usize = 128;

/// Maximum bytes of all values of one unit: four of the largest. The search for them takes about 30 times as much
/// memory.
const BYTES_MAX: usize = 4 * VALUE_MAX;

/// Maximum length of a code that a node defines; stores have a column of this length for it.
const CODE_MAX: usize = 50;

/// Size from which text is searched away from the pool's only thread.
pub(crate) const LARGE: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Keeper {
    claim: Claim,
    known: Mutex<Known>,
    /// Keeper of the whole execution, for a unit that shares a folder with others.
    whole: Option<Arc<Keeper>>,
}

#[derive(Default)]
struct Known {
    /// Handles that were opened. A worker that takes over the unit opens them again.
    handles: BTreeSet<String>,
    values: Vec<Zeroizing<String>>,
    /// Values by handle that all steps of the execution read, even if a secret is replaced meanwhile.
    resolved: BTreeMap<String, Zeroizing<String>>,
    bytes: usize,
    /// None if it does not contain all values.
    redactor: Option<Arc<Redactor>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} values)", self.values.len())
    }
}

impl Known {
    fn learn(&mut self, value: Zeroizing<String>) -> Result<(), Box<Failure>> {
        if value.trim().is_empty() || self.values.contains(&value) {
            return Ok(());
        }
        self.bytes += value.len();
        if value.len() > VALUE_MAX || self.bytes > BYTES_MAX || self.values.len() >= VALUES_MAX {
            return Err(too_much());
        }
        self.values.push(value);
        self.redactor = None;
        Ok(())
    }

    fn redactor(&mut self) -> Arc<Redactor> {
        let values = &self.values;
        let made = || Arc::new(Redactor::new(values.iter().map(|value| value.as_str())));
        Arc::clone(self.redactor.get_or_insert_with(made))
    }
}

impl Keeper {
    pub(crate) fn new(claim: Claim, whole: Option<Arc<Keeper>>) -> Keeper {
        Keeper { claim, known: Mutex::default(), whole }
    }

    /// Returns the value of a handle: of a secret by its name, or of a variable of the worker. Steps of an execution that this
    /// worker holds as a whole get the value that was resolved for all of them.
    pub(crate) async fn open(&self, handle: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        let resolved = self.whole.as_deref().and_then(|whole| whole.lock().resolved.get(handle).cloned());
        let value = match (resolved, handle.strip_prefix(ENVIRONMENT)) {
            (Some(value), _) => value,
            (None, Some(variable)) => self.variable(variable).await?,
            (None, None) => self.claim.open_secret(handle).await?,
        };
        self.learn([value.clone()])?;
        self.lock().handles.insert(handle.to_owned());
        Ok(value)
    }

    /// Opens a handle for all steps of the execution that this keeper belongs to.
    pub(crate) async fn resolve(&self, handle: &str) -> Result<(), Box<Failure>> {
        let value = self.open(handle).await?;
        self.lock().resolved.insert(handle.to_owned(), value);
        Ok(())
    }

    /// Opens the handles that an earlier worker opened for the same work. A secret that was deleted meanwhile is
    /// skipped.
    pub(crate) async fn open_again(&self, cursor: &Value) -> Result<(), Box<Failure>> {
        // A run that waited for another execution has its own cursor inside.
        let cursor = cursor.get("then").unwrap_or(cursor);
        let handles = cursor.get(OPENED).and_then(Value::as_array).into_iter().flatten();
        for handle in handles.filter_map(Value::as_str) {
            match self.open(handle).await {
                Err(failure) if failure.has_code(codes::SECRET_LIMIT) => return Err(failure),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn variable(&self, name: &str) -> Result<Zeroizing<String>, Box<Failure>> {
        if self.claim.rights().await?.variables.contain(name) {
            return variable_of_worker(name);
        }
        // The message does not reveal whether the variable exists.
        let message = format!(
            "definitions of this tenant may not read the variable `{name}`; store the value as a secret, or list the \
             variable in the setting `env-secrets` of the server"
        );
        Err(failure(codes::PERMISSION_DENIED, message))
    }

    /// Adds values that were obtained with secrets, such as tokens.
    pub(crate) fn learn(
        &self,
        values: impl IntoIterator<Item = Zeroizing<String>>,
    ) -> Result<(), Box<Failure>> {
        let mut known = self.whole.as_deref().unwrap_or(self).lock();
        values.into_iter().try_for_each(|value| known.learn(value))
    }

    /// Returns a redactor for all values so far, of the unit or of the whole execution.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.whole.as_deref().unwrap_or(self).lock().redactor()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_much() -> Box<Failure> {
    let message = format!(
        "the step is given more secrets than outputs can be searched for: at most {VALUES_MAX} values of {VALUE_MAX} bytes \
         each and {BYTES_MAX} bytes in all; give it fewer or smaller ones, or split the step"
    );
    failure(codes::SECRET_LIMIT, message)
}

/// Returns the handle of a variable.
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
            "the worker has no variable `{name}`, or it is not text: set it where the worker is started"
        );
        failure(codes::RESOURCE_NOT_FOUND, message)
    };
    let value = found.map_err(missing)?;
    check_value(&value)
        .map_err(|error| invalid(format!("the variable `{name}` cannot be a secret: {error}")))?;
    Ok(value)
}

/// Redacts the outcome of a call, before rules read it.
pub(crate) async fn redact_call(redactor: Arc<Redactor>, mut called: CallResult) -> CallResult {
    let size = called.outcome.as_ref().map_or_else(|failed| text_bytes(&failed.details), text_bytes);
    if redactor.is_empty() || size < LARGE {
        redact_now(&redactor, &mut called);
        return called;
    }
    let redact = move || {
        redact_now(&redactor, &mut called);
        called
    };
    let defect = |error: tokio::task::JoinError| Err(failure(codes::WORKER_DEFECT, error.to_string())).into();
    tokio::task::spawn_blocking(redact).await.unwrap_or_else(defect)
}

fn redact_now(redactor: &Redactor, called: &mut CallResult) {
    called.facts.values_mut().for_each(|fact| settle_value(redactor, fact));
    redactor.fields(&mut called.facts);
    match &mut called.outcome {
        Ok(result) => redactor.value(result),
        Err(failure) => redact_failure(redactor, failure),
    }
}

/// Counts the bytes of all texts.
pub(crate) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + text_bytes(field)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Redacts the report of a unit, before it is sent.
pub(crate) fn redact_report(keeper: &Keeper, report: &mut Report) {
    let redactor = &keeper.redactor();
    redactor.fields(&mut report.patch);
    redactor.fields(&mut report.metadata);
    match &mut report.outcome {
        Outcome::Done { output } => redactor.value(output),
        Outcome::Failed(failure) => redact_failure(redactor, failure),
        Outcome::Stopped => {}
        Outcome::Later { cursor, .. } => redact_cursor(keeper, cursor),
        Outcome::Child { definition, inputs, cursor } => {
            [definition, inputs].into_iter().for_each(|value| redactor.value(value));
            redact_cursor(keeper, cursor);
        }
    }
}

pub(crate) fn redact_failure(redactor: &Redactor, failure: &mut Failure) {
    settle(redactor, &mut failure.message);
    failure.code = redactor.beginning(&failure.code, CODE_MAX);
    settle_value(redactor, &mut failure.details);
}

/// Parts of a cursor with data from the run. The other parts are words and counts of the definition, without which a
/// run could not continue, and results, which were redacted when they arrived: searching all of them at every
/// checkpoint would take time that grows with the square of their number.
const LEARNED: [&str; 5] = ["args", "iter", "ctx", "memo", "counted"];

/// The part of a cursor with the handles that were opened.
const OPENED: &str = "opened";

/// Redacts the cursor before it is sent, and adds the names of the secrets that the run has opened.
pub(crate) fn redact_cursor(keeper: &Keeper, cursor: &mut Value) {
    let redactor = keeper.redactor();
    let Some(fields) = cursor.as_object_mut() else { return };
    let learned = fields.iter_mut().filter(|(key, _)| LEARNED.contains(&key.as_str()));
    learned.for_each(|(_, value)| redactor.value(value));
    let handles = keeper.lock().handles.clone();
    if !handles.is_empty() {
        fields.insert(OPENED.to_owned(), json!(handles));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{
        Call, Reply, ReplyTo, ResourceAsk, ResourceReply, Rights, SecretValue, Unit, Variables,
    };

    /// A keeper of a unit whose secrets have their own names as values.
    fn keeper() -> Keeper {
        let port = |call, mut reply: ReplyTo| {
            let Call::Resource(call) = call else { panic!("only secrets are opened here") };
            let answer = match call.ask {
                ResourceAsk::OpenSecret { name } => ResourceReply::Secret(SecretValue(Zeroizing::new(name))),
                _ => ResourceReply::Rights(Rights { programs: true, variables: Variables::All }),
            };
            reply(Reply::Resource(Box::new(answer)));
        };
        let unit = Unit { execution: 1, run: 1, fence: 1 };
        Keeper::new(Claim { unit, port: Arc::new(port) }, None)
    }

    #[tokio::test]
    async fn a_cursor_keeps_its_own_words_loses_values_and_names_what_was_opened() {
        let keeper = keeper();
        for name in ["the-results", "fetch-me"] {
            keeper.open(name).await.unwrap();
        }
        let mut cursor = json!({
            "version": 1, "at": "fetch-me", "tries": { "fetch-me": 1 }, "calls": 1,
            "args": "of the-results", "iter": { "other": ["fetch-me it"] }, "ctx": { "a": "the-results" },
        });
        redact_cursor(&keeper, &mut cursor);
        let expected = json!({
            "version": 1, "at": "fetch-me", "tries": { "fetch-me": 1 }, "calls": 1,
            "args": "of [redacted]", "iter": { "other": ["[redacted] it"] }, "ctx": { "a": "[redacted]" },
            "opened": ["fetch-me", "the-results"],
        });
        assert_eq!(cursor, expected);
        // Another worker that takes over knows the values from the start.
        let later = self::keeper();
        later.open_again(&cursor).await.unwrap();
        assert_eq!(later.redactor().text("the-results"), "[redacted]");
    }

    #[tokio::test]
    async fn a_report_and_a_call_lose_values_wherever_they_are() {
        let keeper = keeper();
        keeper.open("hunter22").await.unwrap();
        let mut failed = Box::new(Failure::of_code("X", "hunter22 is wrong"));
        failed.details = json!({ "stderr": "hunter22", "hunter22": 1 });
        let mut called = CallResult { outcome: Err(failed.clone()), facts: Default::default() };
        called.facts.insert("http".to_owned(), json!({ "location": "/?t=hunter2%32" }));
        let called = redact_call(keeper.redactor(), called).await;
        let mut shown = format!("{called:?}");
        let large = Ok(json!([vec!["x"; LARGE], "hunter22"])).into();
        let called = redact_call(keeper.redactor(), large).await;
        assert_eq!(called.outcome.unwrap()[1], "[redacted]");
        let unit = Unit { execution: 1, run: 1, fence: 1 };
        for outcome in [
            Outcome::Failed(*failed),
            Outcome::Done { output: json!(["hunter22"]) },
            Outcome::Later { delay_ms: 1, cursor: json!({ "memo": "is hunter22" }) },
        ] {
            let patch = json!({ "token": "aHVudGVyMjI=" }).as_object().cloned().unwrap_or_default();
            let mut report = Report { unit, outcome, patch, metadata: Default::default() };
            redact_report(&keeper, &mut report);
            shown.push_str(&format!("{report:?}"));
        }
        let shown = shown.replace("Array [String(\"hunter22\")]", "the handle");
        assert!(
            shown.contains("[redacted]") && !shown.contains("hunter2") && !shown.contains("aHVu"),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn steps_read_what_was_resolved_for_all_of_them_and_open_the_rest() {
        let (whole, asked) = (Arc::new(keeper()), keeper());
        whole.resolve("of-all-steps").await.unwrap();
        // The engine answers no further request for it.
        let silent = Claim { unit: asked.claim.unit, port: Arc::new(|_, _| ()) };
        let step = Keeper::new(silent, Some(Arc::clone(&whole)));
        assert_eq!(step.open("of-all-steps").await.unwrap().as_str(), "of-all-steps");
        assert!(step.open("of-this-step").await.is_err());
        let step = Keeper::new(asked.claim.clone(), Some(whole));
        assert_eq!(step.open("of-this-step").await.unwrap().as_str(), "of-this-step");
    }

    #[tokio::test]
    async fn a_unit_is_given_a_bounded_number_and_size_of_values() {
        let many = keeper();
        for number in 0..VALUES_MAX {
            many.open(&format!("value-number-{number}")).await.unwrap();
        }
        let refused = many.open("one-value-more").await.unwrap_err();
        assert!(
            refused.has_code(codes::SECRET_LIMIT) && refused.message.contains("128 values"),
            "{}",
            refused.message
        );
        let large = keeper();
        for number in 0..4 {
            large.open(&format!("{number}{}", "x".repeat(VALUE_MAX - 1))).await.unwrap();
        }
        assert_eq!(large.open("one-value-more").await.unwrap_err().code, "SECRET_LIMIT");
        assert_eq!(
            keeper().learn([Zeroizing::new("x".repeat(VALUE_MAX + 1))]).unwrap_err().code,
            "SECRET_LIMIT"
        );
    }

    #[tokio::test]
    async fn the_engines_own_variables_are_not_opened() {
        let keeper = keeper();
        for variable in ENGINE_VARIABLES {
            let refused = keeper.open(&variable_handle(variable)).await.unwrap_err();
            assert!(refused.message.contains("the engine's own"), "{}", refused.message);
        }
    }
}
