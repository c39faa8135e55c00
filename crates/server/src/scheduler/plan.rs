//! Turns due occurrences into runs, exactly once: a plan is written only if the schedule has not changed since the plan
//! was made.

use super::store;
use super::stored::{SpecColumn, instant, millis};
use crate::app::App;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use jiff::SignedDuration;
use metrics::counter;
use std::sync::Arc;
use windlass_kernel::Millis;
use windlass_schedule::{PlanRules, PlannedOccurrence, occurrence_key, plan_page, spread_due_time};
use windlass_store::{
    Entry, NewRun, OccurrencePlan, ScheduleRunId, ScheduleWrite, Schedules as _, StoredSchedule,
};

/// Schedules that are planned in one transaction.
const SCHEDULES_MAX: usize = 500;
/// Occurrences of a schedule that become runs at a time; the rest follow at once.
const OCCURRENCES_MAX: usize = 100;
/// Maximum number of occurrences of all schedules in one transaction, if each has one.
const TRANSACTION_MAX: usize = 4_000;
/// Maximum number of transactions of one pass; the rest is due at the next one.
const ROUNDS_MAX: usize = 100;

/// Plans all schedules that are due.
pub(super) async fn plan_due(app: &Arc<App>) -> Result<(), Problem> {
    for _ in 0..ROUNDS_MAX {
        let at = now();
        let due = app.followers.look(move |reader| reader.due_schedules(at, SCHEDULES_MAX)).await?;
        if due.is_empty() {
            return Ok(());
        }
        let each = (TRANSACTION_MAX / due.len()).clamp(1, OCCURRENCES_MAX);
        let plans =
            due.iter().map(|schedule| plan(app, schedule, at, each)).collect::<Result<Vec<_>, _>>()?;
        count_planned(&plans);
        let writes = plans.into_iter().map(|plan| ScheduleWrite::Plan(Box::new(plan)));
        // A plan that is refused was overtaken by a change; the next round reads it.
        app.store_entries(writes.map(|write| Entry::Schedule(Box::new(write))).collect()).await?;
    }
    Ok(())
}

/// Plans the due occurrences of one schedule, before a change applies to later ones. Returns the schedule after that.
pub(crate) async fn plan_before_change(
    app: &App,
    schedule: StoredSchedule,
) -> Result<StoredSchedule, Problem> {
    let mut schedule = schedule;
    for _ in 0..ROUNDS_MAX {
        let at = now();
        if !schedule.enabled || schedule.next_run_at.is_none_or(|next| next > at) {
            return Ok(schedule);
        }
        let plan = plan(app, &schedule, at, OCCURRENCES_MAX)?;
        count_planned(std::slice::from_ref(&plan));
        store(app, ScheduleWrite::Plan(Box::new(plan))).await?;
        let (tenant, id) = (schedule.tenant.clone(), schedule.id);
        let found = app.readers.of(&tenant.clone()).look(move |reader| reader.schedule(&tenant, id)).await?;
        schedule = found.ok_or_else(|| Problem::not_found("schedule", &ids::format_schedule(id)))?;
    }
    Err(Problem::conflict("late occurrences of the schedule are being recorded; try again in a moment"))
}

fn count_planned(plans: &[OccurrencePlan]) {
    let runs = plans.iter().flat_map(|plan| &plan.runs);
    let skipped = runs.filter(|run| run.skipped.is_some()).count();
    counter!("windlass_schedule_occurrences_missed_total").increment(skipped as u64);
}

fn plan(
    app: &App,
    schedule: &StoredSchedule,
    at: Millis,
    occurrences_max: usize,
) -> Result<OccurrencePlan, Problem> {
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
    let rules = PlanRules { misfire: spec.policy.misfire, grace: grace(app), occurrences_max };
    let page = plan_page(&spec.timetable, instant(planned_from), instant(at), rules);
    let runs = page.planned.into_iter().map(|planned| new_run(schedule, planned));
    Ok(OccurrencePlan { runs: runs.collect::<Result<_, _>>()?, next_run_at: page.next.map(millis), ..none })
}

fn grace(app: &App) -> SignedDuration {
    SignedDuration::try_from(app.settings.misfire_grace).unwrap_or(SignedDuration::MAX)
}

fn new_run(schedule: &StoredSchedule, planned: PlannedOccurrence) -> Result<NewRun, Problem> {
    let PlannedOccurrence { nominal, skipped } = planned;
    let occurrence_key = occurrence_key(&ids::format_schedule(schedule.id), nominal);
    let due_time = match skipped {
        None => spread_due_time(&occurrence_key, nominal, schedule.policy.jitter_seconds),
        Some(_) => nominal,
    };
    Ok(NewRun {
        id: ScheduleRunId(ids::fresh_number()?),
        occurrence_key,
        nominal_time: millis(nominal),
        due_time: millis(due_time),
        skipped: skipped.map(|reason| reason.text().to_owned()),
        note: None,
        requested_by: None,
    })
}
