//! Separation of duties: constraints on the people who approve and complete the steps of an execution, and their
//! evaluation. The rules are pure: the caller reads the facts from the journal and commits the verdict.

mod check;

pub use check::{Approval, PerformedDuty, Signal, Verdict, Violation, check, needed_approvers};

use serde::{Deserialize, Serialize};

/// One constraint. All constraints of a definition apply to every approval and manual completion of its executions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum SodConstraint {
    /// The user who started the execution may complete none of its steps.
    MakerChecker,
    /// A positive answer to a task needs this number of different users.
    DistinctApprovers { minimum_approvers: u32 },
    /// A user may perform at most one of these duties in an execution.
    IncompatibleDuties { duty_keys: Vec<String> },
    /// At least one of the users who answer a task has one of these roles.
    SpecialistApproval {
        required_roles: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rationale: Option<String>,
    },
}

impl SodConstraint {
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            SodConstraint::MakerChecker => "MakerChecker",
            SodConstraint::DistinctApprovers { .. } => "DistinctApprovers",
            SodConstraint::IncompatibleDuties { .. } => "IncompatibleDuties",
            SodConstraint::SpecialistApproval { .. } => "SpecialistApproval",
        }
    }
}

/// Returns the roles among `held` that a constraint asks for, in their order.
#[must_use]
pub fn relevant_roles(constraints: &[SodConstraint], held: &[String]) -> Vec<String> {
    let is_asked = |role: &&String| {
        constraints.iter().any(|constraint| match constraint {
            SodConstraint::SpecialistApproval { required_roles, .. } => required_roles.contains(role),
            SodConstraint::MakerChecker
            | SodConstraint::DistinctApprovers { .. }
            | SodConstraint::IncompatibleDuties { .. } => false,
        })
    };
    held.iter().filter(is_asked).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn constraints_are_stored_as_documents_write_them() {
        let all = json!([
            { "kind": "MakerChecker" },
            { "kind": "DistinctApprovers", "minimumApprovers": 2 },
            { "kind": "IncompatibleDuties", "dutyKeys": ["invoice:write", "payment:send"] },
            { "kind": "SpecialistApproval", "requiredRoles": ["controller"], "rationale": "policy 7" },
            { "kind": "SpecialistApproval", "requiredRoles": ["controller"] },
        ]);
        let parsed: Vec<SodConstraint> = serde_json::from_value(all.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), all);
        let kinds: Vec<&str> = parsed.iter().map(SodConstraint::kind).collect();
        assert!(all.as_array().unwrap().iter().zip(kinds).all(|(one, kind)| one["kind"] == kind));
        let held = ["clerk".to_owned(), "controller".to_owned()];
        assert_eq!(relevant_roles(&parsed, &held), ["controller"]);
    }
}
