//! A schedule as its author writes it: fields, defaults, and every problem at once.

mod fields;
mod target;

pub use target::Target;

use crate::cron::Cron;
use crate::misfire::Misfire;
use crate::overlap::Overlap;
use crate::retry::{RetryPolicy, Strategy};
use crate::timetable::{Cadence, Timetable};
use crate::zone::Zone;
use fields::Fields;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Bytes of a schedule: a tenant has many of them, and a planner reads hundreds at a time.
const DOCUMENT_MAX: usize = 64 * 1024;
/// Characters of a name.
const NAME_MAX: usize = 255;
/// A year in seconds: the longest interval, timeout and delay.
const SECONDS_MAX: u64 = 366 * 86_400;
/// Runs of one schedule at the same time; more would be all slots of a server.
const CONCURRENCY_MAX: u64 = 1_000;
const ATTEMPTS_MAX: u64 = 1_000;
/// A day in seconds: a longer delay is another schedule.
const JITTER_MAX: u64 = 86_400;

/// Policies for the runs of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicy {
    pub overlap: Overlap,
    pub misfire: Misfire,
    pub timeout_seconds: u32,
    pub max_concurrency: u32,
    /// Occurrences start up to this time after their nominal time, each with a delay of its own.
    #[serde(default)]
    pub jitter_seconds: u32,
}

/// A schedule without what the server manages.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSpec {
    pub name: String,
    pub enabled: bool,
    pub timetable: Timetable,
    pub target: Target,
    pub policy: RunPolicy,
    pub retry: RetryPolicy,
    /// Address that receives a request for every dead letter.
    pub dead_letter_webhook: Option<String>,
    /// The expression of a cron schedule.
    expr: Option<String>,
}

/// A field that cannot be used, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

impl ScheduleSpec {
    /// Reads a document. `created_at` is the anchor of an interval that has none. All problems are returned.
    pub fn parse(document: &Value, created_at: Timestamp) -> Result<ScheduleSpec, Vec<FieldProblem>> {
        let mut top = Fields::of(document, "");
        if document.to_string().len() > DOCUMENT_MAX {
            top.problem(
                "",
                &format!("must have at most {DOCUMENT_MAX} bytes; large values belong into a workflow"),
            );
        }
        let name = parse_name(&mut top);
        let enabled = top.boolean("enabled", true);
        let zone = parse_zone(&mut top);
        let (start_at, end_at) = (top.time("start_at"), top.time("end_at"));
        if let (Some(start), Some(end)) = (start_at, end_at)
            && start > end
        {
            top.problem("start_at", "must be <= end_at");
        }
        let mut times = top.object("schedule");
        let (cadence, expr) = parse_cadence(&mut times, start_at.unwrap_or(created_at));
        let mut problems = times.finish();
        let mut to = top.object("target");
        let target = Target::parse(&mut to);
        problems.extend(to.finish());
        let (policy, wrong) = parse_policy(top.optional_object("policy"));
        problems.extend(wrong);
        let (retry, wrong) = parse_retry(top.optional_object("retry"));
        problems.extend(wrong);
        let dead_letter_webhook = top.text("dead_letter_webhook");
        problems.extend(top.finish());
        match (name, zone, cadence, target) {
            (Some(name), Some(zone), Some(cadence), Some(target)) if problems.is_empty() => {
                let timetable = Timetable { cadence, zone, start_at, end_at };
                Ok(ScheduleSpec {
                    name,
                    enabled,
                    timetable,
                    target,
                    policy,
                    retry,
                    dead_letter_webhook,
                    expr,
                })
            }
            _ => Err(problems),
        }
    }

    /// Returns the first occurrence after a time, or the problem of a schedule that has none.
    pub fn first_after(&self, after: Timestamp) -> Result<Timestamp, FieldProblem> {
        let (field, message) = match &self.timetable.cadence {
            Cadence::Cron(_) => {
                ("schedule.expr", "has no occurrence from now to end_at; check day, month and end_at")
            }
            Cadence::Interval { .. } => ("schedule.every_seconds", "has no occurrence from now to end_at"),
            Cadence::Once { .. } => ("schedule.at", "must be in the future, from start_at to end_at"),
        };
        let none = || FieldProblem { field: field.to_owned(), message: message.to_owned() };
        self.timetable.next_after(after).ok_or_else(none)
    }

    /// Returns the expression of a cron schedule.
    #[must_use]
    pub fn expression(&self) -> Option<&str> {
        self.expr.as_deref()
    }

    /// Returns the document with all fields; those that are not set are null.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Value> {
        let Timetable { cadence, zone, start_at, end_at } = &self.timetable;
        let time = |at: &Option<Timestamp>| at.map_or(Value::Null, |at| json!(format_time(at)));
        let schedule = match cadence {
            Cadence::Cron(_) => json!({ "kind": "cron", "expr": self.expr }),
            Cadence::Interval { every_seconds, anchor } => {
                json!({ "kind": "interval", "every_seconds": every_seconds, "anchor_at": format_time(*anchor) })
            }
            Cadence::Once { at } => json!({ "kind": "once", "at": format_time(*at) }),
        };
        let document = json!({
            "name": self.name,
            "enabled": self.enabled,
            "timezone": zone.name(),
            "schedule": schedule,
            "target": self.target.to_json(),
            "policy": self.policy,
            "retry": self.retry,
            "start_at": time(start_at),
            "end_at": time(end_at),
            "dead_letter_webhook": self.dead_letter_webhook,
        });
        match document {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// Formats a time as the API does: RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn format_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns the key of an occurrence: the schedule's id and the nominal time in seconds.
#[must_use]
pub fn occurrence_key(schedule_id: &str, nominal: Timestamp) -> String {
    format!("{schedule_id}:{}", nominal.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

fn parse_name(top: &mut Fields<'_>) -> Option<String> {
    let name = top.text("name");
    match name.as_deref().map(str::trim) {
        None | Some("") => top.problem("name", "must be non-empty"),
        Some(name) if name.chars().count() > NAME_MAX || name.chars().any(char::is_control) => {
            top.problem(
                "name",
                &format!("must have at most {NAME_MAX} characters and no control characters"),
            );
        }
        Some(name) => return Some(name.to_owned()),
    }
    None
}

fn parse_zone(top: &mut Fields<'_>) -> Option<Zone> {
    let name = top.text("timezone").unwrap_or_else(|| "UTC".to_owned());
    let found = Zone::find(&name);
    if found.is_err() {
        top.problem("timezone", "must be a valid IANA timezone");
    }
    found.ok()
}

fn parse_cadence(times: &mut Fields<'_>, anchor: Timestamp) -> (Option<Cadence>, Option<String>) {
    let mut expr = None;
    let cadence = match times.text("kind").as_deref() {
        Some("cron") => {
            expr = times.required_text("expr", "cron");
            let parsed = expr.as_deref().map(Cron::parse);
            if let Some(Err(error)) = &parsed {
                times.problem("expr", &format!("must parse as a cron expression: {error}"));
            }
            parsed.and_then(Result::ok).map(Cadence::Cron)
        }
        Some("interval") => {
            let every = times.number("every_seconds", 1..=SECONDS_MAX);
            if times.value("every_seconds").is_none() {
                times.problem("every_seconds", "must be > 0");
            }
            let anchor = times.time("anchor_at").unwrap_or(anchor);
            every.map(|every_seconds| Cadence::Interval { every_seconds, anchor })
        }
        Some("once") => {
            let at = times.time("at");
            if times.value("at").is_none() {
                times.problem("at", "is required for once");
            }
            at.map(|at| Cadence::Once { at })
        }
        _ => {
            times.problem("kind", "must be one of cron, interval, once");
            times.ignore_rest();
            None
        }
    };
    (cadence, expr)
}

fn parse_policy(given: Option<Fields<'_>>) -> (RunPolicy, Vec<FieldProblem>) {
    let default = RunPolicy {
        overlap: Overlap::Forbid,
        misfire: Misfire::RunOnceIfLate,
        timeout_seconds: 300,
        max_concurrency: 1,
        jitter_seconds: 0,
    };
    let Some(mut fields) = given else { return (default, Vec::new()) };
    let policy = RunPolicy {
        overlap: fields.choice("overlap", default.overlap, "allow, forbid, queue_latest, replace"),
        misfire: fields.choice("misfire", default.misfire, "skip, run_once_if_late, catch_up"),
        timeout_seconds: fields.number("timeout_seconds", 1..=SECONDS_MAX).unwrap_or(default.timeout_seconds),
        max_concurrency: fields
            .number("max_concurrency", 1..=CONCURRENCY_MAX)
            .unwrap_or(default.max_concurrency),
        jitter_seconds: fields.number("jitter_seconds", 0..=JITTER_MAX).unwrap_or(default.jitter_seconds),
    };
    (policy, fields.finish())
}

fn parse_retry(given: Option<Fields<'_>>) -> (RetryPolicy, Vec<FieldProblem>) {
    let default = RetryPolicy {
        max_attempts: 0,
        strategy: Strategy::Exponential,
        initial_delay_seconds: 30,
        max_delay_seconds: 900,
    };
    let Some(mut fields) = given else { return (default, Vec::new()) };
    let initial = fields.number("initial_delay_seconds", 1..=SECONDS_MAX);
    let largest = fields.number("max_delay_seconds", 1..=SECONDS_MAX);
    let retry = RetryPolicy {
        max_attempts: fields.number("max_attempts", 0..=ATTEMPTS_MAX).unwrap_or(default.max_attempts),
        strategy: fields.choice("strategy", default.strategy, "none, exponential"),
        initial_delay_seconds: initial.unwrap_or(default.initial_delay_seconds),
        // A first delay beyond the default of the largest one raises it.
        max_delay_seconds: largest.unwrap_or(default.max_delay_seconds.max(initial.unwrap_or(0))),
    };
    if retry.max_delay_seconds < retry.initial_delay_seconds {
        fields.problem("max_delay_seconds", "must be >= initial_delay_seconds");
    }
    (retry, fields.finish())
}

#[cfg(test)]
mod tests;
