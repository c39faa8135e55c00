//! The times of a schedule.

use crate::cron::Cron;
use crate::zone::Zone;
use jiff::{SignedDuration, Timestamp};

/// The rule that a schedule's occurrences follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cadence {
    Cron(Cron),
    /// The anchor and every multiple of the interval after it.
    Interval {
        every_seconds: u32,
        anchor: Timestamp,
    },
    Once {
        at: Timestamp,
    },
}

/// A cadence in a time zone, within the time in which a schedule is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable {
    pub cadence: Cadence,
    pub zone: Zone,
    /// The first instant that can be an occurrence.
    pub start_at: Option<Timestamp>,
    /// The last instant that can be an occurrence.
    pub end_at: Option<Timestamp>,
}

impl Timetable {
    /// Returns the first occurrence after an instant; None if there is none, or none within a century.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let just_before = |start: Timestamp| start.checked_sub(SignedDuration::from_nanos(1)).ok();
        let after = self.start_at.and_then(just_before).map_or(after, |start| start.max(after));
        let next = match &self.cadence {
            Cadence::Cron(cron) => cron.next_after(after, &self.zone),
            Cadence::Interval { every_seconds, anchor } => next_multiple(*anchor, *every_seconds, after),
            Cadence::Once { at } => (*at > after).then_some(*at),
        };
        next.filter(|next| self.end_at.is_none_or(|end| *next <= end))
    }

    /// Returns the occurrences after an instant, the earliest first.
    pub fn occurrences(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(after), |last| self.next_after(*last))
    }
}

fn next_multiple(anchor: Timestamp, every_seconds: u32, after: Timestamp) -> Option<Timestamp> {
    if after < anchor {
        return Some(anchor);
    }
    let every = i128::from(every_seconds.max(1)) * 1_000_000_000;
    let elapsed = after.as_nanosecond() - anchor.as_nanosecond();
    Timestamp::from_nanosecond(anchor.as_nanosecond() + (elapsed / every + 1) * every).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn check(cadence: Cadence, window: (Option<&str>, Option<&str>), after: &str, expected: &[&str]) {
        let (start_at, end_at) = (window.0.map(at), window.1.map(at));
        let timetable = Timetable { cadence, zone: Zone::find("Europe/Berlin").unwrap(), start_at, end_at };
        let found: Vec<String> = timetable.occurrences(at(after)).take(3).map(|at| at.to_string()).collect();
        assert_eq!(found, expected, "after {after}");
    }

    #[test]
    fn sch_16_an_interval_counts_from_its_anchor() {
        let hourly = || Cadence::Interval { every_seconds: 3_600, anchor: at("2026-03-11T09:00:00Z") };
        let third = ["2026-03-11T11:00:00Z", "2026-03-11T12:00:00Z", "2026-03-11T13:00:00Z"];
        check(hourly(), (None, None), "2026-03-11T10:30:00Z", &third);
        check(hourly(), (None, None), "2026-03-11T10:00:00Z", &third);
        check(hourly(), (None, None), "2026-03-11T10:59:59.999Z", &third);
        let first = ["2026-03-11T09:00:00Z", "2026-03-11T10:00:00Z", "2026-03-11T11:00:00Z"];
        check(hourly(), (None, None), "2020-01-01T00:00:00Z", &first);
        // A start keeps the multiples of the anchor.
        check(hourly(), (Some("2026-03-11T10:30:00Z"), None), "2020-01-01T00:00:00Z", &third);
    }

    #[test]
    fn sch_16_one_time_happens_once() {
        let once = || Cadence::Once { at: at("2026-03-11T09:00:00Z") };
        check(once(), (None, None), "2026-03-11T08:59:59Z", &["2026-03-11T09:00:00Z"]);
        check(once(), (None, None), "2026-03-11T09:00:00Z", &[]);
        check(once(), (Some("2026-03-11T09:00:01Z"), None), "2026-03-11T08:00:00Z", &[]);
        check(once(), (None, Some("2026-03-11T08:59:59Z")), "2026-03-11T08:00:00Z", &[]);
    }

    #[test]
    fn sch_16_start_and_end_are_part_of_the_time_of_a_cron_schedule() {
        let noon = || Cadence::Cron(Cron::parse("0 12 * * *").unwrap());
        let window = (Some("2026-07-10T10:00:00Z"), Some("2026-07-11T10:00:00Z"));
        check(noon(), window, "2026-01-01T00:00:00Z", &["2026-07-10T10:00:00Z", "2026-07-11T10:00:00Z"]);
        let window = (Some("2026-07-10T10:00:00.001Z"), Some("2026-07-11T09:59:59Z"));
        check(noon(), window, "2026-01-01T00:00:00Z", &[]);
    }
}
