//! Occurrences that are due: which of them run, and which are recorded as skipped.

use crate::timetable::Timetable;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Treatment of occurrences that are late because no planner was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// Late ones are skipped.
    Skip,
    /// The newest runs, however late; the others are skipped.
    RunOnceIfLate,
    /// All of them run.
    CatchUp,
}

/// A part of a schedule's due occurrences, the oldest first.
#[derive(Debug, Clone, Copy)]
pub struct DuePage<'d> {
    pub due: &'d [Timestamp],
    /// Newer occurrences are due, too.
    pub has_newer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedOccurrence {
    pub nominal: Timestamp,
    /// Reason for which it never runs; None if it is to run.
    pub skipped: Option<SkipReason>,
}

/// Reason for which an occurrence never runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    LaterThanGrace,
    NewerIsDue,
    Superseded,
    QueueFull,
}

impl SkipReason {
    /// Returns the reason as it is stored in `error_text`.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            SkipReason::LaterThanGrace => "skipped due to misfire policy",
            SkipReason::NewerIsDue => "skipped due to run_once_if_late policy",
            SkipReason::Superseded => "superseded by newer queued occurrence",
            SkipReason::QueueFull => "skipped because too many occurrences of the schedule wait",
        }
    }
}

/// Policy by which due occurrences become runs.
#[derive(Debug, Clone, Copy)]
pub struct PlanRules {
    pub misfire: Misfire,
    /// Maximum delay of an occurrence under `skip`.
    pub grace: SignedDuration,
    /// Occurrences of one page; the rest follow in the next one.
    pub occurrences_max: usize,
}

/// A page of due occurrences with the decision about each, and the first occurrence after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPage {
    pub planned: Vec<PlannedOccurrence>,
    pub next: Option<Timestamp>,
}

/// Plans the occurrences that are due, from the first one without a run on.
#[must_use]
pub fn plan_page(timetable: &Timetable, first: Timestamp, now: Timestamp, rules: PlanRules) -> PlannedPage {
    let mut due = vec![first];
    let mut next = timetable.next_after(first);
    while let Some(nominal) = next.filter(|next| *next <= now && due.len() < rules.occurrences_max) {
        due.push(nominal);
        next = timetable.next_after(nominal);
    }
    let page = DuePage { due: &due, has_newer: next.is_some_and(|next| next <= now) };
    PlannedPage { planned: plan_due(rules.misfire, page, now, rules.grace), next }
}

/// Decides about a page of due occurrences. `grace` is how late an occurrence may be under `skip`.
#[must_use]
pub fn plan_due(
    misfire: Misfire,
    page: DuePage<'_>,
    now: Timestamp,
    grace: SignedDuration,
) -> Vec<PlannedOccurrence> {
    let newest = page.due.last().filter(|_| !page.has_newer);
    let reason = |nominal: Timestamp| match misfire {
        Misfire::Skip => (now.duration_since(nominal) > grace).then_some(SkipReason::LaterThanGrace),
        Misfire::RunOnceIfLate => (newest != Some(&nominal)).then_some(SkipReason::NewerIsDue),
        Misfire::CatchUp => None,
    };
    page.due
        .iter()
        .map(|nominal| PlannedOccurrence { nominal: *nominal, skipped: reason(*nominal) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three occurrences at minutes 0, 1 and 2; `r` runs and `s` is skipped.
    fn check(misfire: Misfire, now: &str, has_newer: bool, expected: &str) {
        let due: Vec<Timestamp> =
            (0..3).map(|minute| format!("2026-01-01T00:0{minute}:00Z").parse().unwrap()).collect();
        let page = DuePage { due: &due, has_newer };
        let planned = plan_due(misfire, page, now.parse().unwrap(), SignedDuration::from_secs(10));
        let fates: String = planned.iter().map(|one| if one.skipped.is_none() { 'r' } else { 's' }).collect();
        assert_eq!(fates, expected, "{misfire:?} at {now}");
    }

    #[test]
    fn sch_12_sch_18_late_occurrences_follow_the_misfire_policy() {
        let late = "2026-01-01T00:02:30Z";
        check(Misfire::Skip, late, false, "sss");
        check(Misfire::RunOnceIfLate, late, false, "ssr");
        check(Misfire::CatchUp, late, false, "rrr");
    }

    #[test]
    fn an_occurrence_within_the_grace_is_on_time() {
        check(Misfire::Skip, "2026-01-01T00:02:10Z", false, "ssr");
        check(Misfire::Skip, "2026-01-01T00:02:10.001Z", false, "sss");
    }

    #[test]
    fn the_newest_is_in_the_last_page() {
        check(Misfire::RunOnceIfLate, "2026-01-01T09:00:00Z", true, "sss");
        check(Misfire::CatchUp, "2026-01-01T09:00:00Z", true, "rrr");
    }
}
