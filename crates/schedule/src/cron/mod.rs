//! Cron expressions: five fields, or six with seconds in front.

mod days;
mod field;

use crate::zone::Zone;
use days::{MonthDays, WeekDays};
use field::{FieldTable, Values};
use jiff::Timestamp;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

/// Bytes of an expression; the longest useful ones list every minute.
const TEXT_MAX: usize = 512;

/// Years that a search covers. The rarest date that exists, a fifth weekday in February, recurs within 40 years.
const SEARCH_YEARS: i16 = 100;

/// Names for common expressions.
const ALIASES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    seconds: Values,
    minutes: Values,
    hours: Values,
    months: Values,
    month_days: MonthDays,
    week_days: WeekDays,
}

/// A cron expression that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(pub(crate) String);

impl Cron {
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        if text.len() > TEXT_MAX {
            return Err(CronError(format!("a cron expression has at most {TEXT_MAX} bytes")));
        }
        let alias = ALIASES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
        let fields: Vec<&str> = alias.map_or(text, |(_, meaning)| meaning).split_whitespace().collect();
        let (seconds, rest) = match fields.as_slice() {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (*second, [minute, hour, day, month, weekday]),
            _ => return Err(wrong_number_of_fields(&fields)),
        };
        let [minute, hour, day, month, weekday] = rest;
        Ok(Cron {
            seconds: FieldTable::SECOND.parse(seconds)?,
            minutes: FieldTable::MINUTE.parse(minute)?,
            hours: FieldTable::HOUR.parse(hour)?,
            months: FieldTable::MONTH.parse(month)?,
            month_days: MonthDays::parse(day)?,
            week_days: WeekDays::parse(weekday)?,
        })
    }

    /// Returns the first occurrence after an instant.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        if self.counts_elapsed_time() { self.next_elapsed(after, zone) } else { self.next_fixed(after, zone) }
    }

    /// Returns whether the expression repeats within a day (`*` in hours, minutes or seconds). Such occurrences follow
    /// elapsed time: none in the hour that a clock change skips, and some in both passes of a repeated hour. An
    /// expression with fixed times has one occurrence for each of them on every matching day.
    fn counts_elapsed_time(&self) -> bool {
        self.seconds.has_star || self.minutes.has_star || self.hours.has_star
    }

    fn next_fixed(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut local = whole_second(zone.to_local(after));
        // Ends with the repeated hour at the latest: later local times are later instants.
        loop {
            local = self.next_local(local.checked_add(1.second()).ok()?)?;
            let at = zone.resolve(local)?;
            if at > after {
                return Some(at);
            }
        }
    }

    fn next_elapsed(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let mut from = Timestamp::from_second(after.as_millisecond().div_euclid(1_000) + 1).ok()?;
        // One turn for each clock change before the occurrence.
        loop {
            let regime = zone.regime(from);
            let local = self.next_local(regime.offset.to_datetime(from))?;
            let at = regime.offset.to_timestamp(local).ok()?;
            match regime.until {
                Some(change) if change <= at => from = change,
                _ => return Some(at),
            }
        }
    }

    /// Returns the first matching local time at or after a given one, without regard to clock changes.
    fn next_local(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut earliest = from.time();
        let last_year = date.year().saturating_add(SEARCH_YEARS);
        while date.year() <= last_year {
            if !self.months.contains(date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
            } else {
                if let Some(time) = self.matches(date).then(|| self.next_time(earliest)).flatten() {
                    return Some(date.to_datetime(time));
                }
                date = date.tomorrow().ok()?;
            }
            earliest = Time::midnight();
        }
        None
    }

    /// Returns whether a date matches: either of two restricted day fields is enough, as in every cron.
    fn matches(&self, date: Date) -> bool {
        let (month_day, week_day) = (self.month_days.contains(date), self.week_days.contains(date));
        match self.month_days.is_any() || self.week_days.is_any() {
            true => month_day && week_day,
            false => month_day || week_day,
        }
    }

    /// Returns the first matching time of a day at or after a given one.
    fn next_time(&self, from: Time) -> Option<Time> {
        let (first_minute, first_second) = (self.minutes.next(0)?, self.seconds.next(0)?);
        let hour = self.hours.next(from.hour())?;
        if hour > from.hour() {
            return Time::new(hour, first_minute, first_second, 0).ok();
        }
        if let Some(minute) = self.minutes.next(from.minute()) {
            if minute > from.minute() {
                return Time::new(hour, minute, first_second, 0).ok();
            }
            if let Some(second) = self.seconds.next(from.second()) {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = self.minutes.next(minute + 1) {
                return Time::new(hour, minute, first_second, 0).ok();
            }
        }
        let hour = self.hours.next(hour + 1)?;
        Time::new(hour, first_minute, first_second, 0).ok()
    }
}

fn wrong_number_of_fields(fields: &[&str]) -> CronError {
    if fields.first().is_some_and(|first| first.contains("TZ=")) {
        return CronError("a cron expression names no time zone; use the schedule's `timezone`".to_owned());
    }
    if let [name] = fields
        && name.starts_with('@')
    {
        let names: Vec<&str> = ALIASES.iter().map(|(name, _)| *name).collect();
        return CronError(format!("`{name}` is unknown; use one of {}", names.join(", ")));
    }
    CronError(format!(
        "a cron expression has 5 fields (minute, hour, day of month, month, day of week) or 6 with seconds in front, not {}",
        fields.len()
    ))
}

fn whole_second(at: DateTime) -> DateTime {
    let time = at.time();
    at.date().at(time.hour(), time.minute(), time.second(), 0)
}

#[cfg(test)]
mod tests;
