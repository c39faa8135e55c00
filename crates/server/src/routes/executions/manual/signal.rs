//! The body of a completion signal: the schema of the document, checked field by field.

use crate::auth::Caller;
use crate::ids;
use crate::problem::{Detail, Problem};
use crate::routes::shared::parse_time;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use windlass_kernel::{ExecutionId, ManualNote, ManualOutcome, Millis};

/// Maximum length of notes, in characters.
const NOTES_MAX: usize = 10_000;
/// Maximum number of references to evidence, and of bytes of each.
const REFS_MAX: usize = 100;
const REF_MAX: usize = 1_000;
/// Maximum length of ids and tokens, in bytes.
const ID_MAX: usize = 1_000;

/// Fields that only the whole signal has. A body without any of them is the short form for approvals.
const WHOLE: [&str; 5] = ["schemaVersion", "runId", "actionId", "completionToken", "completedAtIso"];
const SHARED: [&str; 4] = ["outcome", "actorUserId", "notes", "evidenceRefs"];
/// Name of `evidenceRefs` in the short form of earlier releases.
const OLD_REFS: &str = "evidence";

/// The signal as its route documents it. Bodies are checked by [`Signal::parse`], which reports every wrong field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body")]
pub(crate) struct CompletionSignal {
    /// Always 1. This and the next fields are required for manual steps; approvals need `outcome` only.
    #[schema(minimum = 1, maximum = 1)]
    schema_version: Option<u32>,
    /// Id of the execution, as in the path.
    run_id: Option<String>,
    /// Id of the action, as in the path.
    action_id: Option<String>,
    /// Token in `waitingFor` of the execution.
    completion_token: Option<String>,
    outcome: SignalOutcome,
    /// Must be the id of the caller.
    actor_user_id: Option<String>,
    #[schema(format = DateTime)]
    completed_at_iso: Option<String>,
    #[schema(max_length = 10000)]
    notes: Option<String>,
    /// Ids of documents that prove the outcome.
    #[schema(max_items = 100)]
    evidence_refs: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub(crate) enum SignalOutcome {
    Succeeded,
    Failed,
    Cancelled,
}

/// A signal whose fields are valid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Signal {
    pub outcome: ManualOutcome,
    pub actor: Option<String>,
    pub notes: Option<String>,
    pub evidence: Vec<String>,
    /// None: the short form, which only approvals accept.
    pub whole: Option<WholeSignal>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct WholeSignal {
    pub token: String,
    pub completed_at: Millis,
}

impl Signal {
    /// Checks a body against the schema and the path of the request. An error has a detail for every wrong field.
    pub(super) fn parse(
        body: &Map<String, Value>,
        execution: ExecutionId,
        action: &str,
    ) -> Result<Signal, Problem> {
        let is_whole = WHOLE.iter().any(|field| body.contains_key(*field));
        let mut fields = Fields { body, is_whole, details: Vec::new() };
        let whole = is_whole.then(|| fields.whole(execution, action));
        let (outcome, actor) = (fields.outcome(), fields.optional_id("actorUserId"));
        if is_whole && actor.is_none() {
            fields.require("actorUserId");
        }
        let (notes, evidence) = (fields.notes(), fields.evidence());
        fields.refuse_unknown();
        match (outcome, fields.details.is_empty()) {
            (Some(outcome), true) => Ok(Signal { outcome, actor, notes, evidence, whole }),
            _ => Err(invalid(fields.details)),
        }
    }

    /// Returns the error for a short form that was sent to a manual step.
    pub(super) fn incomplete() -> Problem {
        let required = WHOLE.into_iter().chain(["actorUserId"]);
        invalid(required.map(|field| Detail::new(field, "is required")).collect())
    }

    pub(super) fn note(&self, caller: &Caller) -> ManualNote {
        ManualNote {
            outcome: self.outcome.clone(),
            actor: caller.id.clone(),
            notes: self.notes.clone(),
            evidence: self.evidence.clone(),
            completed_at: self.whole.as_ref().map(|whole| whole.completed_at),
            ..ManualNote::default()
        }
    }
}

fn invalid(details: Vec<Detail>) -> Problem {
    let first = details.first().map(|detail| format!("`{}`: {}", detail.path, detail.message));
    let problem = Problem::bad_request(first.unwrap_or_else(|| "the signal is not valid".to_owned()));
    Problem { details, ..problem }
}

struct Fields<'b> {
    body: &'b Map<String, Value>,
    is_whole: bool,
    details: Vec<Detail>,
}

impl Fields<'_> {
    fn whole(&mut self, execution: ExecutionId, action: &str) -> WholeSignal {
        if !self.body.get("schemaVersion").is_some_and(|version| *version == 1) {
            self.refuse("schemaVersion", "must be 1");
        }
        let run = self.id("runId");
        if run.is_some_and(|run| ids::number("exec_", &run) != Some(execution.0)) {
            self.refuse("runId", "must be the id of the execution in the path");
        }
        if self.id("actionId").is_some_and(|id| id != action) {
            self.refuse("actionId", "must be the id of the action in the path");
        }
        let (token, at) = (self.id("completionToken"), self.id("completedAtIso"));
        let at = at.and_then(|text| match parse_time("completedAtIso", &text) {
            Ok(at) => Some(at),
            Err(problem) => {
                self.details.extend(problem.details);
                None
            }
        });
        WholeSignal { token: token.unwrap_or_default(), completed_at: at.unwrap_or(Millis(0)) }
    }

    fn outcome(&mut self) -> Option<ManualOutcome> {
        match self.body.get("outcome").and_then(Value::as_str) {
            Some("Succeeded") => Some(ManualOutcome::Succeeded),
            Some("Failed") => Some(ManualOutcome::Failed),
            Some("Cancelled") => Some(ManualOutcome::Cancelled),
            // Words of earlier releases.
            Some("succeeded" | "approved") if !self.is_whole => Some(ManualOutcome::Succeeded),
            Some("failed" | "rejected") if !self.is_whole => Some(ManualOutcome::Failed),
            Some("cancelled") if !self.is_whole => Some(ManualOutcome::Cancelled),
            _ => {
                self.refuse("outcome", "must be Succeeded, Failed or Cancelled");
                None
            }
        }
    }

    /// Returns a required string that is not empty.
    fn id(&mut self, field: &str) -> Option<String> {
        if !self.body.contains_key(field) {
            self.require(field);
            return None;
        }
        self.optional_id(field)
    }

    fn optional_id(&mut self, field: &str) -> Option<String> {
        let value = self.body.get(field)?;
        let text = value.as_str().filter(|text| (1..=ID_MAX).contains(&text.len())).map(str::to_owned);
        if text.is_none() {
            self.refuse(field, format!("must be a string of 1 to {ID_MAX} bytes"));
        }
        text
    }

    fn notes(&mut self) -> Option<String> {
        let value = self.body.get("notes").filter(|value| !value.is_null())?;
        let text = value.as_str().filter(|text| text.chars().count() <= NOTES_MAX).map(str::to_owned);
        if text.is_none() {
            self.refuse("notes", format!("must be a string of at most {NOTES_MAX} characters"));
        }
        text
    }

    fn evidence(&mut self) -> Vec<String> {
        let is_given = |field: &&str| self.body.get(*field).is_some_and(|refs| !refs.is_null());
        let Some(field) = ["evidenceRefs", OLD_REFS].into_iter().find(is_given) else { return Vec::new() };
        let is_ref = |text: &&str| (1..=REF_MAX).contains(&text.len());
        let refs: Option<Vec<String>> = self.body[field]
            .as_array()
            .and_then(|refs| refs.iter().map(|id| id.as_str().filter(is_ref).map(str::to_owned)).collect());
        let refs = refs.filter(|refs| refs.len() <= REFS_MAX);
        if refs.is_none() {
            let message = format!("must be a list of at most {REFS_MAX} ids of 1 to {REF_MAX} bytes");
            self.refuse(field, message);
        }
        refs.unwrap_or_default()
    }

    fn refuse_unknown(&mut self) {
        let is_known =
            |key: &str| WHOLE.contains(&key) || SHARED.contains(&key) || (key == OLD_REFS && !self.is_whole);
        let unknown: Vec<&String> = self.body.keys().filter(|key| !is_known(key)).collect();
        for key in unknown {
            let shown: String = key.chars().take(100).collect();
            self.refuse(&shown, "is not a field of the signal");
        }
    }

    fn require(&mut self, field: &str) {
        self.refuse(field, "is required");
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        // One detail for a field is enough.
        if self.details.iter().all(|detail| detail.path != field) {
            self.details.push(Detail::new(field, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const EXECUTION: ExecutionId = ExecutionId(7);

    fn whole() -> Value {
        json!({
            "schemaVersion": 1, "runId": "exec_00000000000000000000000000000007", "actionId": "ship",
            "completionToken": "wct_x", "outcome": "Succeeded", "actorUserId": "user_1",
            "completedAtIso": "2026-02-20T10:00:00.000Z", "notes": "done", "evidenceRefs": ["e1"],
        })
    }

    fn parse(body: &Value) -> Result<Signal, Vec<String>> {
        let parsed = Signal::parse(body.as_object().unwrap(), EXECUTION, "ship");
        parsed.map_err(|problem| problem.details.into_iter().map(|detail| detail.path).collect())
    }

    #[test]
    fn act_10_the_signal_of_the_document_is_accepted_as_it_is_printed() {
        let signal = parse(&whole()).unwrap();
        assert_eq!(signal.whole.unwrap().token, "wct_x");
        assert_eq!((signal.notes.as_deref(), &signal.evidence[..]), (Some("done"), &["e1".to_owned()][..]));
        let mut least = whole();
        for optional in ["notes", "evidenceRefs"] {
            least.as_object_mut().unwrap().remove(optional);
        }
        assert!(parse(&least).is_ok());
    }

    #[test]
    fn act_10_anything_else_is_refused_with_a_detail_for_every_wrong_field() {
        for required in WHOLE.into_iter().chain(["outcome", "actorUserId"]) {
            let mut body = whole();
            body.as_object_mut().unwrap().remove(required);
            assert_eq!(parse(&body), Err(vec![required.to_owned()]), "without {required}");
        }
        for (field, wrong) in [
            ("schemaVersion", json!(2)),
            ("schemaVersion", json!("1")),
            ("runId", json!("exec_00000000000000000000000000000008")),
            ("actionId", json!("other")),
            ("completionToken", json!(5)),
            ("completionToken", json!("")),
            ("outcome", json!("succeeded")),
            ("outcome", json!("Skipped")),
            ("actorUserId", json!(null)),
            ("completedAtIso", json!("yesterday")),
            ("notes", json!(1)),
            ("evidenceRefs", json!("e1")),
            ("evidenceRefs", json!([""])),
            ("extra", json!(true)),
        ] {
            let mut body = whole();
            body[field] = wrong.clone();
            assert_eq!(parse(&body), Err(vec![field.to_owned()]), "{field}: {wrong}");
        }
        let all = json!({ "schemaVersion": 2, "outcome": 1, "x": 1 });
        let expected = [
            "schemaVersion",
            "runId",
            "actionId",
            "completionToken",
            "completedAtIso",
            "outcome",
            "actorUserId",
            "x",
        ];
        assert_eq!(parse(&all).unwrap_err(), expected);
    }

    #[test]
    fn the_short_form_has_no_token() {
        let signal = parse(&json!({ "outcome": "Failed", "notes": null })).unwrap();
        assert_eq!((signal.whole, signal.actor), (None, None));
        assert_eq!(Signal::incomplete().details.len(), 6);
    }
}
