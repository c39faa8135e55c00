//! `windlass schedules next`: the next times of a cron expression.

use crate::commands::report::print_json;
use crate::embedded::now;
use crate::exit::Usage;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use windlass_kernel::Millis;
use windlass_schedule::{Cadence, Cron, Timetable, Zone};
use windlass_views::time;

/// Print the next times of a cron expression
///
/// An expression has 5 fields (minute, hour, day of month, month, day of week) or 6 with seconds in front. Each line has
/// the local time with its offset, and the same time in UTC.
#[derive(Debug, clap::Args)]
pub struct Next {
    /// The expression in quotes, as in '0 6 * * MON-FRI'
    expr: String,
    /// The time zone, by its IANA name
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Number of times to print
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// Print times after this one, as in 2030-01-31T00:00:00Z; now by default
    #[arg(long, value_name = "TIME")]
    after: Option<Timestamp>,
    /// Print a JSON list of times in UTC
    #[arg(long)]
    json: bool,
}

impl Next {
    pub fn run(&self) -> anyhow::Result<()> {
        let wrong = |error: String| Usage::new(format!("`{}`: {error}", self.expr));
        let cron = Cron::parse(&self.expr).map_err(|error| wrong(error.to_string()))?;
        let zone = Zone::find(&self.tz).map_err(|error| Usage::new(error.to_string()))?;
        let timetable =
            Timetable { cadence: Cadence::Cron(cron), zone: zone.clone(), start_at: None, end_at: None };
        let after = self.after.map_or_else(|| Timestamp::from_millisecond(now().0), Ok)?;
        let times: Vec<Timestamp> = timetable.occurrences(after).take(usize::from(self.count)).collect();
        if times.is_empty() {
            return Err(wrong("no such time exists; check the day and the month".to_owned()).into());
        }
        let utc = |at: &Timestamp| time(Millis(at.as_millisecond()));
        if self.json {
            return print_json(&times.iter().map(|at| json!(utc(at))).collect::<Value>());
        }
        let mut out = stdout().lock();
        for at in &times {
            writeln!(out, "{}  {}", zone.format(*at), utc(at))?;
        }
        Ok(())
    }
}
