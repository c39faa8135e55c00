//! Schedules: their names and revisions, and those that follow the triggers of a workflow.

use crate::commit::{Applied, WorkflowId};
use crate::schedules::{ScheduleId, StoredSchedule};
use crate::store::StoreResult;
use std::collections::BTreeSet;
use windlass_kernel::Millis;

/// Returns whether another schedule of the tenant has the name. `holder` is the schedule that has it.
#[must_use]
pub fn is_name_taken(schedule: ScheduleId, holder: Option<ScheduleId>) -> bool {
    holder.is_some_and(|holder| holder != schedule)
}

/// Facts about a schedule that is to change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduleFacts<'s> {
    /// None if the tenant has no such schedule.
    pub known: Option<&'s StoredSchedule>,
    /// The schedule of the tenant that has the new name.
    pub name_holder: Option<ScheduleId>,
}

/// Returns the row of a schedule after a change, or the answer to the refused write. Times of runs are left to planner and
/// dispatcher, which may have changed them since the schedule was read; with `keeps_times`, so is the next occurrence.
pub fn change_schedule(
    change: &StoredSchedule,
    facts: ScheduleFacts<'_>,
    keeps_times: bool,
) -> Result<StoredSchedule, Applied> {
    let known = facts.known.ok_or(Applied::Duplicate)?;
    if is_name_taken(change.id, facts.name_holder) {
        return Err(Applied::Taken);
    }
    if known.revision != change.revision {
        return Err(Applied::Conflict);
    }
    let next_run_at = if keeps_times { known.next_run_at } else { change.next_run_at };
    Ok(change_row(known, change, next_run_at))
}

fn change_row(
    known: &StoredSchedule,
    change: &StoredSchedule,
    next_run_at: Option<Millis>,
) -> StoredSchedule {
    StoredSchedule {
        id: known.id,
        revision: known.revision + 1,
        next_run_at,
        last_run_at: known.last_run_at,
        workflow: known.workflow,
        created_at: known.created_at,
        ..change.clone()
    }
}

/// Decides whether a schedule is deleted with its runs. `active` is the number of runs that are claimed or running; None if
/// the tenant has no such schedule.
#[must_use]
pub fn judge_schedule_deletion(active: Option<usize>) -> Applied {
    match active {
        None => Applied::Duplicate,
        Some(0) => Applied::Done,
        Some(_) => Applied::Conflict,
    }
}

/// Facts about the schedules of a tenant, looked up when [`replace_triggered`] asks for them.
pub trait TriggeredFacts {
    /// Returns the schedule that has this name.
    fn name_holder(&mut self, name: &str) -> StoreResult<Option<ScheduleId>>;

    /// Counts the runs of a schedule that are claimed or running.
    fn count_active(&mut self, schedule: ScheduleId) -> StoreResult<usize>;
}

/// Change of the schedules of a workflow's triggers.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggeredChange {
    Create(Box<StoredSchedule>),
    /// Writes this row in place of the one that has its id.
    Replace(Box<StoredSchedule>),
    /// Deletes a schedule with its runs.
    Delete(ScheduleId),
}

/// Returns the changes that make the wanted schedules those of a workflow's triggers. One that a trigger had before keeps
/// its runs, and its times unless they changed. One that no trigger has any more is deleted, or only disabled while one of
/// its runs is active. Of schedules with the same name the first one counts.
pub fn replace_triggered(
    workflow: WorkflowId,
    wanted: &[StoredSchedule],
    known: &[StoredSchedule],
    facts: &mut impl TriggeredFacts,
) -> StoreResult<Vec<TriggeredChange>> {
    let (mut changes, mut names) = (Vec::new(), BTreeSet::new());
    for schedule in wanted {
        let name = format!("{} wf_{:032x}", schedule.name, workflow.0);
        if !names.insert(name.clone()) {
            continue;
        }
        let schedule = StoredSchedule { name, workflow: Some(workflow), ..schedule.clone() };
        match known.iter().find(|known| known.name == schedule.name) {
            None if is_name_taken(schedule.id, facts.name_holder(&schedule.name)?) => {}
            None => changes.push(TriggeredChange::Create(Box::new(schedule))),
            Some(known) if known.spec == schedule.spec => {}
            Some(known) => {
                let next_run_at = schedule.next_run_at.filter(|_| known.enabled);
                let StoredSchedule { enabled, paused_at, .. } = *known;
                let change = StoredSchedule { enabled, paused_at, ..schedule };
                changes.push(TriggeredChange::Replace(Box::new(change_row(known, &change, next_run_at))));
            }
        }
    }
    for gone in known.iter().filter(|known| !names.contains(&known.name)) {
        if judge_schedule_deletion(Some(facts.count_active(gone.id)?)) == Applied::Done {
            changes.push(TriggeredChange::Delete(gone.id));
        } else {
            let disabled = StoredSchedule { enabled: false, ..gone.clone() };
            changes.push(TriggeredChange::Replace(Box::new(change_row(gone, &disabled, None))));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::schedule;

    #[test]
    fn a_change_is_refused_in_one_order_and_keeps_what_it_does_not_set() {
        let stored = StoredSchedule {
            revision: 4,
            next_run_at: Some(Millis(7)),
            last_run_at: Some(Millis(6)),
            workflow: Some(WorkflowId(9)),
            ..schedule(1, "one")
        };
        let change = |revision| StoredSchedule {
            revision,
            name: "two".to_owned(),
            next_run_at: Some(Millis(50)),
            created_at: Millis(40),
            updated_at: Millis(41),
            ..schedule(1, "one")
        };
        let changed = |next| StoredSchedule {
            revision: 5,
            next_run_at: Some(Millis(next)),
            last_run_at: Some(Millis(6)),
            workflow: Some(WorkflowId(9)),
            created_at: stored.created_at,
            ..change(4)
        };
        let (own, other) = (Some(ScheduleId(1)), Some(ScheduleId(2)));
        for (known, name_holder, revision, keeps_times, expected) in [
            (None, other, 3, false, Err(Applied::Duplicate)),
            (Some(&stored), other, 3, false, Err(Applied::Taken)),
            (Some(&stored), own, 3, false, Err(Applied::Conflict)),
            (Some(&stored), None, 5, false, Err(Applied::Conflict)),
            (Some(&stored), None, 4, false, Ok(changed(50))),
            (Some(&stored), own, 4, true, Ok(changed(7))),
        ] {
            let facts = ScheduleFacts { known, name_holder };
            let found = change_schedule(&change(revision), facts, keeps_times);
            assert_eq!(found, expected, "{name_holder:?} {revision} {keeps_times}");
        }
    }

    #[test]
    fn a_schedule_is_deleted_while_none_of_its_runs_is_active() {
        for (active, expected) in
            [(None, Applied::Duplicate), (Some(0), Applied::Done), (Some(1), Applied::Conflict)]
        {
            assert_eq!(judge_schedule_deletion(active), expected, "{active:?}");
        }
    }

    /// Schedules of which one has an active run, and names that are taken.
    struct Facts {
        active: Option<u128>,
        taken: Option<&'static str>,
    }

    impl TriggeredFacts for Facts {
        fn name_holder(&mut self, name: &str) -> StoreResult<Option<ScheduleId>> {
            Ok(self.taken.filter(|taken| name.starts_with(taken)).map(|_| ScheduleId(99)))
        }

        fn count_active(&mut self, schedule: ScheduleId) -> StoreResult<usize> {
            Ok(usize::from(self.active == Some(schedule.0)))
        }
    }

    const WORKFLOW: WorkflowId = WorkflowId(7);

    /// A schedule of the workflow with this name and spec.
    fn triggered(id: u128, name: &str, spec: &str) -> StoredSchedule {
        let name = format!("{name} wf_{:032x}", WORKFLOW.0);
        StoredSchedule { spec: spec.to_owned(), workflow: Some(WORKFLOW), ..schedule(id, &name) }
    }

    fn wanted(id: u128, name: &str, spec: &str) -> StoredSchedule {
        let (spec, next_run_at) = (spec.to_owned(), Some(Millis(500)));
        StoredSchedule { spec, next_run_at, updated_at: Millis(400), ..schedule(id, name) }
    }

    fn check(known: &[StoredSchedule], wanted: &[StoredSchedule], mut facts: Facts, expected: &[&str]) {
        let found = replace_triggered(WORKFLOW, wanted, known, &mut facts).expect("no lookup fails");
        let row = |verb: &str, row: &StoredSchedule| {
            let StoredSchedule { id, name, spec, revision, enabled, next_run_at, .. } = row;
            let (name, next) = (name.split(' ').next().unwrap_or_default(), next_run_at.map(|at| at.0));
            assert_eq!(row.workflow, Some(WORKFLOW));
            format!("{verb} {} {name} {spec} revision {revision} enabled {enabled} next {next:?}", id.0)
        };
        let texts = found.iter().map(|change| match change {
            TriggeredChange::Create(schedule) => row("create", schedule),
            TriggeredChange::Replace(schedule) => row("replace", schedule),
            TriggeredChange::Delete(id) => format!("delete {}", id.0),
        });
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn schedules_of_triggers_are_created_kept_changed_disabled_and_deleted() {
        let none = || Facts { active: None, taken: None };
        check(&[], &[wanted(1, "a", "x")], none(), &["create 1 a x revision 1 enabled true next Some(500)"]);
        let known = [triggered(1, "a", "x")];
        check(&known, &[wanted(2, "a", "x")], none(), &[]);
        let changed = "replace 1 a y revision 2 enabled true next Some(500)";
        check(&known, &[wanted(2, "a", "y")], none(), &[changed]);
        let paused = [StoredSchedule { enabled: false, next_run_at: None, ..triggered(1, "a", "x") }];
        let still_paused = "replace 1 a y revision 2 enabled false next None";
        check(&paused, &[wanted(2, "a", "y")], none(), &[still_paused]);
        check(&known, &[], none(), &["delete 1"]);
        let active = Facts { active: Some(1), taken: None };
        check(&known, &[], active, &["replace 1 a x revision 2 enabled false next None"]);
        let created = "create 2 b x revision 1 enabled true next Some(500)";
        check(&known, &[wanted(2, "b", "x")], none(), &[created, "delete 1"]);
    }

    #[test]
    fn a_name_has_one_schedule_of_a_trigger() {
        let twice = [wanted(1, "a", "x"), wanted(2, "a", "y")];
        let first = "create 1 a x revision 1 enabled true next Some(500)";
        check(&[], &twice, Facts { active: None, taken: None }, &[first]);
        check(&[], &twice, Facts { active: None, taken: Some("a") }, &[]);
    }
}
