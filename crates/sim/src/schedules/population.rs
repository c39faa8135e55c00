//! Random schedules. Their zones change their clocks within the simulated time.

use crate::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_kernel::Millis;
use windlass_schedule::{Misfire, Overlap, ScheduleSpec, Timetable};
use windlass_store::{ScheduleId, StoredSchedule, Tenant};

/// Time zones that change their clocks within a month from 7 March 2026 on, forward or back, by an hour or half an hour.
pub const ZONES: [&str; 6] = [
    "America/New_York",
    "Europe/Berlin",
    "Asia/Jerusalem",
    "Australia/Lord_Howe",
    "America/Santiago",
    "America/Havana",
];
/// The beginning of the simulated time.
pub const BEGIN: &str = "2026-03-07T00:00:00Z";

/// Expressions around the hours in which clocks change, and others.
const EXPRESSIONS: [&str; 10] = [
    "30 2 * * *",
    "15,45 0-3 * * *",
    "0 0 * * *",
    "*/30 * * * *",
    "20 * * * *",
    "0 */6 * * *",
    "30 1 * * SUN",
    "0 12 LW * *",
    "5 3 15W * *",
    "45 23 * * MON#2",
];

/// A simulated schedule, and what its times are.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: ScheduleId,
    pub timetable: Timetable,
    pub stored: StoredSchedule,
}

pub fn begin() -> Timestamp {
    BEGIN.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the last instant of the simulated time; no schedule has an occurrence after it.
pub fn end_of(days: u32) -> Timestamp {
    begin() + SignedDuration::from_hours(24) * i32::try_from(days).unwrap_or(1)
}

/// Returns the name of a schedule's id in keys of occurrences.
pub fn key_of(id: ScheduleId) -> String {
    format!("sch_{:032x}", id.0)
}

/// Makes a schedule by chance. Each of them has an occurrence.
pub fn member(number: usize, days: u32, rng: &mut Rng) -> Member {
    loop {
        let document = document(number, days, rng);
        let Ok(spec) = ScheduleSpec::parse(&document, begin()) else { continue };
        let Some(first) = spec.timetable.next_after(just_before(begin())) else { continue };
        let id = ScheduleId(number as u128 + 1);
        let stored = StoredSchedule {
            id,
            tenant: Tenant::default(),
            name: spec.name.clone(),
            enabled: true,
            spec: String::new(),
            policy: spec.policy,
            retry: spec.retry,
            revision: 1,
            paused_at: None,
            next_run_at: Some(Millis(first.as_millisecond())),
            last_run_at: None,
            definition: None,
            workflow: None,
            dead_letter_url: None,
            created_at: Millis(begin().as_millisecond()),
            updated_at: Millis(begin().as_millisecond()),
        };
        return Member { id, timetable: spec.timetable, stored };
    }
}

pub fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at)
}

fn document(number: usize, days: u32, rng: &mut Rng) -> Value {
    let hour = SignedDuration::from_hours(1);
    let some_hours = |rng: &mut Rng| hour * i32::try_from(rng.below(u64::from(days) * 24)).unwrap_or(1);
    let schedule = match rng.below(10) {
        0..=6 => json!({ "kind": "cron", "expr": rng.pick(&EXPRESSIONS) }),
        7..=8 => {
            let (every, anchor) = (rng.between(40, 600) * 60, begin() + some_hours(rng));
            json!({ "kind": "interval", "every_seconds": every, "anchor_at": anchor.to_string() })
        }
        _ => json!({ "kind": "once", "at": (begin() + some_hours(rng)).to_string() }),
    };
    let overlap = *rng.pick(&[Overlap::Allow, Overlap::Forbid, Overlap::QueueLatest, Overlap::Replace]);
    let misfire = *rng.pick(&[Misfire::Skip, Misfire::RunOnceIfLate, Misfire::CatchUp]);
    json!({
        "name": format!("schedule {number}"),
        "end_at": end_of(days).to_string(),
        "timezone": rng.pick(&ZONES),
        "schedule": schedule,
        "target": { "kind": "shell", "command": "true" },
        "policy": {
            "overlap": overlap,
            "misfire": misfire,
            "max_concurrency": rng.between(1, 3),
            "jitter_seconds": if rng.percent(20) { rng.between(1, 900) } else { 0 },
        },
        "retry": {
            "max_attempts": rng.below(5),
            "initial_delay_seconds": rng.between(1, 600),
            "max_delay_seconds": 3_600,
        },
    })
}
