//! Evidence: an entry for every attempt, for every end of a step and of the execution, and for every action of a person.
//! Entries are a function of the journal, so they are the same each time.
//!
//! They form a chain: each holds the hash of the one before it. An auditor who keeps the last hash elsewhere can verify
//! later that no entry before it was changed.

mod chain;
mod projection;
mod unique;

pub use chain::{BadRecord, EvidenceChain};
pub use projection::EvidenceProjection;
pub use unique::UniqueKeys;

use crate::canonical::canonical;
use crate::compensation::Compensation;
use crate::place::ErrorPlace;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use windlass_kernel::Failure;

/// Records are derived when they are read, so a change of the rules changes the hashes of executions that have ended. It
/// raises this number, and the changelog names it; records without the number are of version 1.
const RULES_VERSION: u8 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Version of the schema; always 1.
    schema_version: u8,
    /// Version of the rules that derive records from a journal. Chains of one execution with different versions differ.
    rules_version: u8,
    /// The execution and the entry's number in it, from 1.
    pub evidence_id: String,
    /// The execution that it happened in: of what a retry took over, the one before.
    run_id: String,
    /// The step; none for what is about the whole execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    action_id: Option<String>,
    /// Iteration numbers, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    path: Vec<u32>,
    /// Operation that the attempt, or the hook, invoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    operation: Option<String>,
    /// Key that the operation received, the same on every attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    idempotency_key: Option<String>,
    /// Number of the attempt, from 1; absent if nothing was attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    attempt: Option<u32>,
    category: Category,
    outcome: EvidenceOutcome,
    /// Whether this is the last entry of the step, or of the execution.
    terminal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    started_at_iso: Option<String>,
    #[schema(format = DateTime)]
    ended_at_iso: String,
    /// Time of a completion as the person states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    completed_at_iso: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<Classified>,
    /// Correlation id of the start; the id of the requested execution if the start had none.
    correlation_id: String,
    actor: Actor,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    notes: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    evidence_refs: Vec<String>,
    /// Summary of the compensation, at the end of an execution that was compensated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    compensation: Option<Compensation>,
    /// Hash of the previous entry; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    previous_hash: Option<String>,
    /// SHA-256 of this entry without this field and `anchor`, as canonical JSON (RFC 8785), in hexadecimal digits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash_sha256: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum Category {
    /// An attempt, or what became of a step.
    Action,
    /// An attempt to undo a completed action, or the reason why none was made.
    Compensation,
    /// A person completed what waited for one.
    Approval,
    /// A person held it, released it or changed its context.
    OperatorSurface,
    /// A policy refused the answer of a person.
    PolicyViolation,
    /// The end of the execution.
    System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum EvidenceOutcome {
    Succeeded,
    PartialSuccess,
    Failed,
    Cancelled,
    Skipped,
    /// The worker was lost, or its lease.
    Lost,
    Held,
    Released,
    Patched,
    /// The execution begins again from the start.
    Restarted,
    /// The operation was called, and a person has to confirm its end.
    WaitingForManualCompletion,
    /// An approval that is one of several.
    Counted,
    /// A policy refused the answer; the step still waits.
    Refused,
    /// A forced cancel gave up the compensation before it began.
    NotRun,
    /// The completed action has side effects and no hook that undoes them.
    NonCompensable,
}

impl EvidenceOutcome {
    /// Returns the name in summaries, which are part of hashed entries: it never changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EvidenceOutcome::Succeeded => "Succeeded",
            EvidenceOutcome::PartialSuccess => "PartialSuccess",
            EvidenceOutcome::Failed => "Failed",
            EvidenceOutcome::Cancelled => "Cancelled",
            EvidenceOutcome::Skipped => "Skipped",
            EvidenceOutcome::Lost => "Lost",
            EvidenceOutcome::Held => "Held",
            EvidenceOutcome::Released => "Released",
            EvidenceOutcome::Patched => "Patched",
            EvidenceOutcome::Restarted => "Restarted",
            EvidenceOutcome::WaitingForManualCompletion => "WaitingForManualCompletion",
            EvidenceOutcome::Counted => "Counted",
            EvidenceOutcome::Refused => "Refused",
            EvidenceOutcome::NotRun => "NotRun",
            EvidenceOutcome::NonCompensable => "NonCompensable",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Classified {
    code: String,
    class: String,
    message: String,
    retryable: bool,
    /// Place of the error, without its line in the definition: entries follow from the journal alone.
    #[serde(flatten)]
    place: ErrorPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind")]
pub enum Actor {
    #[serde(rename_all = "camelCase")]
    User {
        user_id: String,
    },
    System,
}

/// Returns the hash of an entry, without the fields that do not belong to it.
fn hash(entry: &mut Value) -> String {
    if let Some(fields) = entry.as_object_mut() {
        fields.remove("hashSha256");
        fields.remove("anchor");
    }
    Sha256::digest(canonical(entry)).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Evidence {
    /// Sets the hash of the previous entry.
    fn chained(mut self, previous: Option<String>) -> Evidence {
        self.previous_hash = previous;
        self.hash_sha256.clear();
        self.hash_sha256 = hash(&mut json!(self));
        self
    }
}

impl Classified {
    pub(crate) fn of(failure: &Failure) -> Classified {
        Classified {
            code: failure.code.clone(),
            class: failure.class.name().to_owned(),
            message: failure.message.clone(),
            retryable: failure.is_retryable(),
            place: ErrorPlace::default(),
        }
    }
}

impl Actor {
    fn user(by: &str) -> Actor {
        Actor::User { user_id: by.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::EvidenceOutcome;
    use serde_json::json;

    /// Entries that are stored elsewhere were hashed with these names.
    #[test]
    fn the_name_of_an_outcome_is_its_serialised_one() {
        let outcomes = [
            EvidenceOutcome::Succeeded,
            EvidenceOutcome::PartialSuccess,
            EvidenceOutcome::Failed,
            EvidenceOutcome::Cancelled,
            EvidenceOutcome::Skipped,
            EvidenceOutcome::Lost,
            EvidenceOutcome::Held,
            EvidenceOutcome::Released,
            EvidenceOutcome::Patched,
            EvidenceOutcome::Restarted,
            EvidenceOutcome::WaitingForManualCompletion,
            EvidenceOutcome::Counted,
            EvidenceOutcome::Refused,
            EvidenceOutcome::NotRun,
            EvidenceOutcome::NonCompensable,
        ];
        for outcome in outcomes {
            assert_eq!(json!(outcome), outcome.name());
        }
    }
}
