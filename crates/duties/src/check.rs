//! The evaluation of a policy for one signal of a person.

use crate::SodConstraint;
use std::collections::BTreeSet;

/// An answer of a user to an earlier task of the execution, as a duty that the user performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerformedDuty<'a> {
    pub user: &'a str,
    pub duty: &'a str,
}

/// A positive answer to the task of the signal that was counted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approval<'a> {
    pub user: &'a str,
    pub roles: &'a [String],
}

/// A signal that is about to be accepted, with the facts of its execution.
#[derive(Debug, Clone, Copy)]
pub struct Signal<'a> {
    pub actor: &'a str,
    pub roles: &'a [String],
    /// Whether the answer is positive. One negative answer ends a task.
    pub consents: bool,
    /// The duty of the task; None if the definition names none.
    pub duty: Option<&'a str>,
    /// Users who started the execution, or the executions that it continues.
    pub initiators: &'a [&'a str],
    pub performed: &'a [PerformedDuty<'a>],
    pub approvals: &'a [Approval<'a>],
}

/// The effect of a signal that violates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The task ends with the outcome of the signal.
    Ends,
    /// The signal is one of several that the task needs.
    Counts { given: u32, needed: u32 },
}

/// A constraint that refuses a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The kind of the constraint.
    pub constraint: &'static str,
    pub message: String,
}

/// Evaluates all constraints, and returns the first that is violated.
pub fn check(constraints: &[SodConstraint], signal: &Signal<'_>) -> Result<Verdict, Violation> {
    let approvers: BTreeSet<&str> =
        signal.approvals.iter().map(|approval| approval.user).chain([signal.actor]).collect();
    let given = u32::try_from(approvers.len()).unwrap_or(u32::MAX);
    let needed = needed_approvers(constraints);
    let ends = !signal.consents || given >= needed;
    for constraint in constraints {
        if let Some(message) = violation(constraint, signal, ends) {
            return Err(Violation { constraint: constraint.kind(), message });
        }
    }
    Ok(if ends { Verdict::Ends } else { Verdict::Counts { given, needed } })
}

/// Returns the number of different users that a positive answer needs.
#[must_use]
pub fn needed_approvers(constraints: &[SodConstraint]) -> u32 {
    let of_one = |constraint: &SodConstraint| match constraint {
        SodConstraint::DistinctApprovers { minimum_approvers } => *minimum_approvers,
        SodConstraint::MakerChecker
        | SodConstraint::IncompatibleDuties { .. }
        | SodConstraint::SpecialistApproval { .. } => 1,
    };
    constraints.iter().map(of_one).max().unwrap_or(1)
}

/// Returns why the constraint refuses the signal. `ends`: the task would end by it.
fn violation(constraint: &SodConstraint, signal: &Signal<'_>, ends: bool) -> Option<String> {
    let actor = signal.actor;
    match constraint {
        SodConstraint::MakerChecker => {
            let is_maker = signal.initiators.contains(&actor);
            is_maker.then(|| format!("{actor} started this run, so another user must answer"))
        }
        // It delays the end of a task and refuses none of its signals.
        SodConstraint::DistinctApprovers { .. } => None,
        SodConstraint::IncompatibleDuties { duty_keys } => {
            let duty = signal.duty.filter(|duty| is_among(duty_keys, duty))?;
            let by_actor = signal.performed.iter().filter(|done| done.user == actor && done.duty != duty);
            let other = by_actor.map(|done| done.duty).find(|other| is_among(duty_keys, other))?;
            Some(format!("{actor} performed `{other}` in this run, so another user must perform `{duty}`"))
        }
        SodConstraint::SpecialistApproval { required_roles, .. } => {
            let is_special = |roles: &[String]| roles.iter().any(|role| required_roles.contains(role));
            let has_one = is_special(signal.roles)
                || signal.approvals.iter().any(|approval| is_special(approval.roles));
            let names = required_roles.join(", ");
            (ends && !has_one).then(|| format!("{actor} has none of the roles that must answer: {names}"))
        }
    }
}

fn is_among(keys: &[String], duty: &str) -> bool {
    keys.iter().any(|key| key == duty)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: &str = "user_maker";
    const OTHER: &str = "user_other";

    fn signal(actor: &str) -> Signal<'_> {
        Signal {
            actor,
            roles: &[],
            consents: true,
            duty: Some("payment:send"),
            initiators: &[MAKER],
            performed: &[],
            approvals: &[],
        }
    }

    fn refused(constraint: &SodConstraint, signal: &Signal<'_>) -> Option<&'static str> {
        check(std::slice::from_ref(constraint), signal).err().map(|violation| violation.constraint)
    }

    #[test]
    fn act_12_the_maker_may_not_be_the_checker_for_any_outcome() {
        let constraint = SodConstraint::MakerChecker;
        assert_eq!(refused(&constraint, &signal(MAKER)), Some("MakerChecker"));
        assert_eq!(refused(&constraint, &Signal { consents: false, ..signal(MAKER) }), Some("MakerChecker"));
        assert_eq!(refused(&constraint, &signal(OTHER)), None);
    }

    #[test]
    fn act_12_a_task_ends_when_enough_different_users_consent() {
        let constraints = [SodConstraint::DistinctApprovers { minimum_approvers: 2 }];
        let first = signal(OTHER);
        assert_eq!(check(&constraints, &first), Ok(Verdict::Counts { given: 1, needed: 2 }));
        let by_other = [Approval { user: OTHER, roles: &[] }];
        let again = Signal { approvals: &by_other, ..signal(OTHER) };
        assert_eq!(check(&constraints, &again), Ok(Verdict::Counts { given: 1, needed: 2 }));
        let second = Signal { approvals: &by_other, ..signal(MAKER) };
        assert_eq!(check(&constraints, &second), Ok(Verdict::Ends));
        let refusal = Signal { consents: false, ..first };
        assert_eq!(check(&constraints, &refusal), Ok(Verdict::Ends), "one refusal is enough");
    }

    #[test]
    fn act_12_no_user_performs_two_incompatible_duties_of_a_run() {
        let duty_keys = vec!["invoice:write".to_owned(), "payment:send".to_owned()];
        let constraint = SodConstraint::IncompatibleDuties { duty_keys };
        let wrote = [PerformedDuty { user: OTHER, duty: "invoice:write" }];
        let sent = [PerformedDuty { user: OTHER, duty: "payment:send" }];
        let cases: [(&str, &[PerformedDuty<'_>], Option<&str>, bool); 6] = [
            (OTHER, &wrote, Some("payment:send"), true),
            (MAKER, &wrote, Some("payment:send"), false),
            (OTHER, &sent, Some("payment:send"), false),
            (OTHER, &wrote, Some("report:read"), false),
            (OTHER, &wrote, None, false),
            (OTHER, &[], Some("payment:send"), false),
        ];
        for (actor, performed, duty, is_refused) in cases {
            let found = refused(&constraint, &Signal { performed, duty, ..signal(actor) });
            assert_eq!(found.is_some(), is_refused, "{actor} {performed:?} {duty:?}");
        }
    }

    #[test]
    fn act_12_a_specialist_must_be_among_those_who_end_a_task() {
        let required_roles = vec!["controller".to_owned(), "cfo".to_owned()];
        let special = SodConstraint::SpecialistApproval { required_roles, rationale: None };
        let (cfo, clerk) = (["cfo".to_owned()], ["clerk".to_owned()]);
        assert_eq!(refused(&special, &signal(OTHER)), Some("SpecialistApproval"), "no roles are known");
        assert!(refused(&special, &Signal { roles: &clerk, ..signal(OTHER) }).is_some());
        assert!(refused(&special, &Signal { roles: &cfo, ..signal(OTHER) }).is_none());
        let both = [special, SodConstraint::DistinctApprovers { minimum_approvers: 2 }];
        let first = Signal { roles: &clerk, ..signal(OTHER) };
        assert_eq!(check(&both, &first), Ok(Verdict::Counts { given: 1, needed: 2 }));
        let by_clerk = [Approval { user: OTHER, roles: &clerk }];
        let second = Signal { approvals: &by_clerk, ..signal(MAKER) };
        assert_eq!(check(&both, &second).unwrap_err().constraint, "SpecialistApproval");
        let second = Signal { roles: &cfo, ..second };
        assert_eq!(check(&both, &second), Ok(Verdict::Ends));
    }
}
