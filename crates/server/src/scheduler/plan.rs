//! Due occurrences become runs, exactly once: a plan is written only if the schedule is as it was when the plan was made.

use super::stored::{SpecColumn, instant, millis};
use crate::app::App;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use windlass_kernel::Millis;
use windlass_schedule::{DuePage, ScheduleSpec, occurrence_key, plan_due as judge_due};
use windlass_store::{
    Entry, NewRun, OccurrencePlan, ScheduleId, ScheduleRunId, ScheduleWrite, Schedules as _, StoredSchedule,
};

/// Schedules that are planned in one transaction.
const SCHEDULES_MAX: usize = 500;
/// Occurrences of a schedule that become runs at a time; the rest follow at once.
const OCCURRENCES_MAX: usize = 100;
/// How late an occurrence may be under the misfire policy `skip`.
const GRACE: SignedDuration = SignedDuration::from_secs(10);
/// Transactions of one look; whatever is left is due at the next one.
const ROUNDS_MAX: usize = 100;

/// Plans all schedules that are due.
pub(super) async fn plan_due(app: &Arc<App>) -> Result<(), Problem> {
    for _ in 0..ROUNDS_MAX {
        let at = now();
        let due = app.followers.look(move |reader| reader.due_schedules(at, SCHEDULES_MAX)).await?;
        if due.is_empty() {
            return Ok(());
        }
        let plans = due.iter().map(|schedule| plan(schedule, at)).collect::<Result<Vec<_>, _>>()?;
        let writes = plans.into_iter().map(|plan| ScheduleWrite::Plan(Box::new(plan)));
        // A plan that is refused was overtaken by a change; the next round sees it.
        app.store_entries(writes.map(|write| Entry::Schedule(Box::new(write))).collect()).await?;
    }
    Ok(())
}

fn plan(schedule: &StoredSchedule, at: Millis) -> Result<OccurrencePlan, Problem> {
    let planned_from = schedule.next_run_at.unwrap_or(at);
    let none = OccurrencePlan {
        schedule: schedule.id,
        revision: schedule.revision,
        planned_from,
        runs: Vec::new(),
        next_run_at: None,
        at,
    };
    let spec = match SpecColumn::read(schedule).and_then(|column| column.spec(schedule)) {
        Ok(spec) => spec,
        Err(problem) => {
            let id = ids::format_schedule(schedule.id);
            tracing::error!(schedule = id, %problem, "a stored schedule cannot be read; it starts nothing");
            return Ok(none);
        }
    };
    let (due, next) = due_occurrences(&spec, instant(planned_from), instant(at));
    let page = DuePage { due: &due, has_newer: next.is_some_and(|next| next <= instant(at)) };
    let planned = judge_due(spec.policy.misfire, page, instant(at), GRACE);
    let runs = planned.into_iter().map(|planned| {
        new_run(schedule.id, planned.nominal, planned.skipped.map(|reason| reason.text().to_owned()))
    });
    Ok(OccurrencePlan { runs: runs.collect::<Result<_, _>>()?, next_run_at: next.map(millis), ..none })
}

/// Returns a page of occurrences from the first one on that are due, and the first one after the page.
fn due_occurrences(
    spec: &ScheduleSpec,
    first: Timestamp,
    now: Timestamp,
) -> (Vec<Timestamp>, Option<Timestamp>) {
    let mut due = vec![first];
    let mut next = spec.timetable.next_after(first);
    while let Some(nominal) = next.filter(|next| *next <= now && due.len() < OCCURRENCES_MAX) {
        due.push(nominal);
        next = spec.timetable.next_after(nominal);
    }
    (due, next)
}

fn new_run(schedule: ScheduleId, nominal: Timestamp, skipped: Option<String>) -> Result<NewRun, Problem> {
    Ok(NewRun {
        id: ScheduleRunId(ids::fresh_number()?),
        occurrence_key: occurrence_key(&ids::format_schedule(schedule), nominal),
        nominal_time: millis(nominal),
        skipped,
        note: None,
    })
}
