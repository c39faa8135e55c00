//! The two fields of days, with `L`, `W` and `#`.

use super::CronError;
use super::field::{FieldTable, Values};
use jiff::civil::{Date, Weekday};

/// Days of the month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonthDays {
    days: Values,
    /// `15W`: the weekdays nearest to these days.
    nearest: Values,
    /// `L` and `L-3`: distances from the last day.
    before_last: Vec<i8>,
    /// `LW`: the last weekday of the month.
    last_weekday: bool,
}

impl MonthDays {
    pub fn parse(text: &str) -> Result<MonthDays, CronError> {
        let table = &FieldTable::MONTH_DAY;
        let none = table.no_values(text);
        let mut days = MonthDays { days: none, nearest: none, before_last: Vec::new(), last_weekday: false };
        text.split(',').try_for_each(|item| days.add_item(table, item))?;
        Ok(days)
    }

    fn add_item(&mut self, table: &FieldTable, item: &str) -> Result<(), CronError> {
        let upper = item.to_ascii_uppercase();
        if upper == "LW" || upper == "WL" {
            self.last_weekday = true;
        } else if upper == "L" {
            self.before_last.push(0);
        } else if let Some(distance) = upper.strip_prefix("L-") {
            let distance = table.parse_value(distance).ok().filter(|distance| *distance <= 30);
            let distance = distance.ok_or_else(|| table.error(item, "`L-` is followed by 1 to 30 days"))?;
            self.before_last.push(distance as i8);
        } else if let Some(day) = upper.strip_suffix('W') {
            let day =
                table.parse_value(day).map_err(|_| table.error(item, "`W` follows one day, as in 15W"))?;
            table.add_item(&mut self.nearest, &day.to_string())?;
        } else {
            table.add_item(&mut self.days, item)?;
        }
        Ok(())
    }

    pub fn is_any(&self) -> bool {
        self.days.is_any
    }

    pub fn contains(&self, date: Date) -> bool {
        let last = date.days_in_month();
        self.days.contains(date.day())
            || self.before_last.iter().any(|distance| date.day() == last - distance)
            || (self.last_weekday && date.day() == nearest_weekday(date, last))
            || self.is_nearest(date)
    }

    /// Returns whether the date is the nearest weekday of a day that is at most two days away.
    fn is_nearest(&self, date: Date) -> bool {
        let near = (date.day() - 2).max(1)..=(date.day() + 2).min(date.days_in_month());
        near.into_iter().any(|day| self.nearest.contains(day) && nearest_weekday(date, day) == date.day())
    }
}

/// Returns the weekday nearest to a day of the date's month, within that month.
fn nearest_weekday(date: Date, day: i8) -> i8 {
    let weekday = date.first_of_month().weekday().wrapping_add(day - 1);
    match weekday {
        Weekday::Saturday if day == 1 => 3,
        Weekday::Saturday => day - 1,
        Weekday::Sunday if day == date.days_in_month() => day - 2,
        Weekday::Sunday => day + 1,
        _ => day,
    }
}

/// Days of the week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeekDays {
    days: Values,
    /// `5L`: the last of these days in the month.
    last: Values,
    /// `5#2`: a day and its number in the month.
    numbered: Vec<(i8, i8)>,
}

impl WeekDays {
    pub fn parse(text: &str) -> Result<WeekDays, CronError> {
        let table = &FieldTable::WEEK_DAY;
        let none = table.no_values(text);
        let mut days = WeekDays { days: none, last: none, numbered: Vec::new() };
        text.split(',').try_for_each(|item| days.add_item(table, item))?;
        Ok(days)
    }

    fn add_item(&mut self, table: &FieldTable, item: &str) -> Result<(), CronError> {
        if let Some((day, number)) = item.split_once('#') {
            let number = number.parse().ok().filter(|number| (1..=5).contains(number));
            let number = number.ok_or_else(|| table.error(item, "`#` is followed by 1 to 5, as in FRI#2"))?;
            self.numbered.push(((table.parse_value(day)? % 7) as i8, number));
        } else if let Some(day) = item.strip_suffix(['L', 'l']) {
            let day =
                table.parse_value(day).map_err(|_| table.error(item, "`L` follows one day, as in FRIL"))?;
            table.add_item(&mut self.last, &day.to_string())?;
        } else {
            table.add_item(&mut self.days, item)?;
        }
        Ok(())
    }

    pub fn is_any(&self) -> bool {
        self.days.is_any
    }

    pub fn contains(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let number = (date.day() - 1) / 7 + 1;
        self.days.contains(weekday)
            || (self.last.contains(weekday) && date.day() + 7 > date.days_in_month())
            || self.numbered.contains(&(weekday, number))
    }
}
