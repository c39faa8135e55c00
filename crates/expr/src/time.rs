//! Dates and times as text, and the filters that format them. Times are UTC; there is no clock here: `now()` reads a value that
//! the scope has from the journal.

use minijinja::{Error, Value as Jinja};

use crate::limits::{charge, failed};

/// Root that `now()` reads: milliseconds since 1970, the time at which the attempt or the decision was made.
pub const NOW: &str = "__now";
/// Operator that turns the value of [`NOW`] into text.
pub(crate) const INSTANT: &str = "__instant";

const DAY_MS: i64 = 86_400_000;
/// Years 0000 to 9999, in milliseconds.
const RANGE_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;
/// Maximum length of a format.
const FORMAT_MAX: usize = 1_000;
/// Maximum length of one formatted field.
const FIELD_BYTES: usize = 16;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Formats the value of [`NOW`].
pub(crate) fn instant(value: &Jinja) -> Result<String, Error> {
    let ms = value.as_i64().ok_or_else(|| failed("`now()` has no value here"))?;
    Ok(Civil::of(ms)?.rfc3339())
}

/// `"2026-03-01T12:00:00Z" | strftime("%d.%m.%Y")`
pub(crate) fn strftime(value: &Jinja, format: Option<&str>) -> Result<String, Error> {
    let civil = Civil::of(milliseconds(value)?)?;
    civil.format(format.unwrap_or("%Y-%m-%d %H:%M:%S"))
}

pub(crate) fn isoformat(value: &Jinja) -> Result<String, Error> {
    Ok(Civil::of(milliseconds(value)?)?.rfc3339())
}

/// Seconds since 1970; whole ones as an integer.
pub(crate) fn timestamp(value: &Jinja) -> Result<Jinja, Error> {
    let ms = milliseconds(value)?;
    Ok(if ms % 1_000 == 0 { Jinja::from(ms / 1_000) } else { Jinja::from(ms as f64 / 1_000.0) })
}

/// Adds seconds, which may be negative.
pub(crate) fn add_seconds(value: &Jinja, seconds: f64) -> Result<String, Error> {
    let added = (seconds * 1_000.0).round();
    if !added.is_finite() || added.abs() > *RANGE_MS.end() as f64 {
        return Err(out_of_range());
    }
    Ok(Civil::of(milliseconds(value)?.saturating_add(added as i64))?.rfc3339())
}

/// Converts a text with a date and perhaps a time, or a number of seconds since 1970.
fn milliseconds(value: &Jinja) -> Result<i64, Error> {
    if let Some(text) = value.as_str() {
        return parse(text.trim()).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            failed(format!("`{shown}` is not a time; write `2026-03-01`, or `2026-03-01T12:00:00Z`"))
        });
    }
    let seconds = f64::try_from(value.clone()).ok().filter(|seconds| seconds.is_finite());
    let seconds =
        seconds.ok_or_else(|| failed(format!("a time is text or a number, not a {}", value.kind())))?;
    if seconds.abs() > *RANGE_MS.end() as f64 / 1_000.0 {
        return Err(out_of_range());
    }
    Ok((seconds * 1_000.0).round() as i64)
}

fn out_of_range() -> Error {
    failed("a time is between the years 0 and 9999")
}

fn parse(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let days = days_of(year, month, day)?;
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| days * DAY_MS);
    };
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = (rest[..at].trim_end(), &rest[at..]);
    Some(days * DAY_MS + clock_ms(clock)? - zone_ms(zone)?)
}

fn clock_ms(clock: &str) -> Option<i64> {
    let (whole, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let whole = if whole.len() == 5 { format!("{whole}:00") } else { whole.to_owned() };
    let [hour, minute, second] = fields(&whole, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(((hour * 60 + minute) * 60 + second) * 1_000 + digits.parse::<i64>().ok()?)
}

fn zone_ms(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return (zone.len() <= 1).then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let plain: String = zone[1..].chars().filter(|letter| *letter != ':').collect();
    let plain = if plain.len() == 2 { format!("{plain}00") } else { plain };
    let number = plain
        .parse::<i64>()
        .ok()
        .filter(|_| plain.len() == 4 && plain.bytes().all(|b| b.is_ascii_digit()))?;
    let (hours, minutes) = (number / 100, number % 100);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

fn fields<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (number, length) in found.iter_mut().zip(lengths) {
        let part = parts.next().filter(|part| part.len() == length)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

/// Days from 1970-01-01, if there is such a date (Howard Hinnant's algorithm over eras of 400 years).
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time as people write it.
struct Civil {
    ms: i64,
    days: i64,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    milli: i64,
}

impl Civil {
    fn of(ms: i64) -> Result<Civil, Error> {
        if !RANGE_MS.contains(&ms) {
            return Err(out_of_range());
        }
        let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let moved = (5 * of_year + 2) / 153;
        let day = of_year - (153 * moved + 2) / 5 + 1;
        let month = if moved < 10 { moved + 3 } else { moved - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let seconds = of_day / 1_000;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        Ok(Civil { ms, days, year, month, day, hour, minute, second, milli: of_day % 1_000 })
    }

    fn rfc3339(&self) -> String {
        let Civil { year, month, day, hour, minute, second, milli, .. } = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }

    fn format(&self, format: &str) -> Result<String, Error> {
        if format.len() > FORMAT_MAX {
            return Err(failed(format!("a format of a time has at most {FORMAT_MAX} bytes")));
        }
        charge(format.len() + format.matches('%').count() * FIELD_BYTES)?;
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' => text.push_str(&self.field(letters.next())?),
                other => text.push(other),
            }
        }
        Ok(text)
    }

    fn field(&self, letter: Option<char>) -> Result<String, Error> {
        let weekday = (self.days + 3).rem_euclid(7);
        let of_year = days_of(self.year, 1, 1).map_or(0, |first| self.days - first + 1);
        let name =
            |names: &[&str], index: i64| names.get(index as usize).copied().unwrap_or_default().to_owned();
        let month = name(&MONTHS, self.month - 1);
        let day = name(&DAYS, weekday);
        Ok(match letter {
            Some('Y') => format!("{:04}", self.year),
            Some('y') => format!("{:02}", self.year % 100),
            Some('m') => format!("{:02}", self.month),
            Some('d') => format!("{:02}", self.day),
            Some('e') => format!("{:2}", self.day),
            Some('H') => format!("{:02}", self.hour),
            Some('I') => format!("{:02}", (self.hour + 11) % 12 + 1),
            Some('p') => (if self.hour < 12 { "AM" } else { "PM" }).to_owned(),
            Some('M') => format!("{:02}", self.minute),
            Some('S') => format!("{:02}", self.second),
            Some('f') => format!("{:03}000", self.milli),
            Some('L') => format!("{:03}", self.milli),
            Some('j') => format!("{of_year:03}"),
            Some('F') => format!("{:04}-{:02}-{:02}", self.year, self.month, self.day),
            Some('T') => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            Some('B') => month,
            Some('b') => month[..3].to_owned(),
            Some('A') => day,
            Some('a') => day[..3].to_owned(),
            Some('u') => (weekday + 1).to_string(),
            Some('s') => self.ms.div_euclid(1_000).to_string(),
            Some('z') => "+0000".to_owned(),
            Some('Z') => "UTC".to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => return Err(failed(format!("a format of a time has no `%{other}`"))),
            None => return Err(failed("a format of a time ends with `%`")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, iso) in [
            ("1970-01-01", "1970-01-01T00:00:00.000Z"),
            ("2024-02-29T23:59:59.5Z", "2024-02-29T23:59:59.500Z"),
            ("2026-03-01 12:30", "2026-03-01T12:30:00.000Z"),
            ("2026-03-01T12:30:00+02:00", "2026-03-01T10:30:00.000Z"),
            ("2026-03-01T00:30:00-0130", "2026-03-01T02:00:00.000Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"),
            ("0000-01-01", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31", "9999-12-31T00:00:00.000Z"),
        ] {
            assert_eq!(isoformat(&Jinja::from(text)).ok().as_deref(), Some(iso), "{text}");
        }
        for bad in [
            "",
            "2026-02-29",
            "2026-13-01",
            "2026-3-1",
            "tomorrow",
            "2026-03-01T25:00:00Z",
            "2026-03-01T1:0:0",
            "2026-03-01Tx",
            "2026-03-01é",
            "+026-03-01",
        ] {
            assert!(isoformat(&Jinja::from(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in (-730_000..740_000).step_by(97) {
            let civil = Civil::of(day * DAY_MS);
            let found = civil.ok().and_then(|civil| days_of(civil.year, civil.month, civil.day));
            assert!(found.is_none_or(|found| found == day), "{day}");
        }
    }
}
