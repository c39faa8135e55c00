//! Schedules without IO: when occurrences are due, what becomes of late ones, which runs may begin, and what follows a
//! failed run. Time is always passed in.

mod cron;
mod jitter;
mod misfire;
mod overlap;
mod retry;
mod run;
mod spec;
mod timetable;
mod zone;

pub use cron::{Cron, CronError};
pub use jitter::spread_due_time;
pub use misfire::{
    DuePage, Misfire, PlanRules, PlannedOccurrence, PlannedPage, SkipReason, plan_due, plan_page,
};
pub use overlap::{ClaimVerdict, Overlap, find_superseded, judge_claim};
pub use retry::{AfterFailure, RetryPolicy, Strategy, decide_after_failure};
pub use run::{IllegalRunSignal, RunSignal, RunStatus};
pub use spec::{FieldProblem, RunPolicy, ScheduleSpec, Target, format_time, occurrence_key};
pub use timetable::{Cadence, Timetable};
pub use zone::{UnknownZone, Zone};
