//! One field of a cron expression: values, lists, ranges, steps and names.

use super::CronError;

/// The values of a field, as a set of numbers below 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    bits: u64,
    /// An entry of the field begins with `*`, with or without a step.
    pub has_star: bool,
    /// The field is `*` or `?`.
    pub is_any: bool,
}

impl Values {
    pub fn contains(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| value < 64 && self.bits >> value & 1 == 1)
    }

    /// Returns the smallest value that is not below a given one.
    pub fn next(self, from: i8) -> Option<i8> {
        let rest = u32::try_from(from).ok().and_then(|from| self.bits.checked_shr(from))?;
        (rest != 0).then(|| from + rest.trailing_zeros() as i8)
    }

    fn insert(&mut self, value: u8) {
        self.bits |= 1 << value;
    }
}

/// Name and permitted values of a field.
#[derive(Debug)]
pub struct FieldTable {
    pub name: &'static str,
    min: u8,
    /// The end of `*` and of `a/n`.
    max: u8,
    /// The largest number that may be written: 7 is another Sunday.
    written_max: u8,
    /// Names of the values from `min` on.
    names: &'static [&'static str],
}

impl FieldTable {
    pub const SECOND: FieldTable = FieldTable::numbers("second", 0, 59);
    pub const MINUTE: FieldTable = FieldTable::numbers("minute", 0, 59);
    pub const HOUR: FieldTable = FieldTable::numbers("hour", 0, 23);
    pub const MONTH_DAY: FieldTable = FieldTable::numbers("day of month", 1, 31);
    pub const MONTH: FieldTable = FieldTable {
        names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
        ..FieldTable::numbers("month", 1, 12)
    };
    pub const WEEK_DAY: FieldTable = FieldTable {
        written_max: 7,
        names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
        ..FieldTable::numbers("day of week", 0, 6)
    };

    const fn numbers(name: &'static str, min: u8, max: u8) -> FieldTable {
        FieldTable { name, min, max, written_max: max, names: &[] }
    }

    pub fn parse(&self, text: &str) -> Result<Values, CronError> {
        let mut values = self.no_values(text);
        text.split(',').try_for_each(|item| self.add_item(&mut values, item))?;
        Ok(values)
    }

    /// Returns the empty set of a field with this text.
    pub fn no_values(&self, text: &str) -> Values {
        let has_star = text.split(',').any(|item| item.starts_with(['*', '?']));
        Values { bits: 0, has_star, is_any: is_any(text) }
    }

    /// Adds one entry of a list: `5`, `1-5`, `*/10`, `1-9/2` or `3/5`.
    pub fn add_item(&self, values: &mut Values, item: &str) -> Result<(), CronError> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.parse_step(item, step)?)),
            None => (item, None),
        };
        let (low, high) = match range.split_once('-') {
            _ if is_any(range) => (self.min, self.max),
            Some((low, high)) => (self.parse_value(low)?, self.parse_value(high)?),
            // A step without an end runs to the end of the field.
            None => {
                (self.parse_value(range)?, if step.is_some() { self.max } else { self.parse_value(range)? })
            }
        };
        if low > high {
            return Err(self.error(item, "the range ends before it begins; write it as two ranges"));
        }
        for value in (low..=high).step_by(step.unwrap_or(1)) {
            values.insert(if value > self.max { self.min } else { value });
        }
        Ok(())
    }

    /// Parses one number or name.
    pub fn parse_value(&self, text: &str) -> Result<u8, CronError> {
        let named = self.names.iter().zip(self.min..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        if let Some((_, value)) = named {
            return Ok(value);
        }
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        match number {
            Some(value) if (self.min..=self.written_max).contains(&value) => Ok(value),
            _ if self.names.is_empty() => {
                Err(self.error(text, &format!("expected a number from {} to {}", self.min, self.written_max)))
            }
            _ => Err(self.error(
                text,
                &format!(
                    "expected a number from {} to {} or a name like {}",
                    self.min, self.written_max, self.names[1]
                ),
            )),
        }
    }

    fn parse_step(&self, item: &str, step: &str) -> Result<usize, CronError> {
        let digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = digits.then(|| step.parse::<u8>().ok()).flatten();
        match parsed {
            Some(step) if (1..=self.max).contains(&step) => Ok(usize::from(step)),
            _ => Err(self.error(item, &format!("a step is a number from 1 to {}", self.max))),
        }
    }

    pub fn error(&self, text: &str, why: &str) -> CronError {
        CronError(format!("`{text}` in the field {}: {why}", self.name))
    }
}

fn is_any(text: &str) -> bool {
    matches!(text, "*" | "?")
}
