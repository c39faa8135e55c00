//! Ids and times in answers.

use jiff::Timestamp;
use windlass_kernel::{ExecutionId, Millis};

pub const EXECUTION: &str = "exec_";
pub const WORKFLOW: &str = "wf_";

#[must_use]
pub fn execution_id(id: ExecutionId) -> String {
    format!("{EXECUTION}{id}")
}

#[must_use]
pub fn workflow_id(id: u128) -> String {
    format!("{WORKFLOW}{id:032x}")
}

/// Formats a duration for people: `12 ms`, `1.2 s`, `2 min 5 s`, `3 h 7 min`.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Formats a time by RFC 3339 in UTC, with milliseconds.
#[must_use]
pub fn time(at: Millis) -> String {
    // A time outside of the years that can be formatted is replaced by the nearest one.
    let last = if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at.0).unwrap_or(last).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Serialises times as [`time`] formats them.
pub(crate) mod time_text {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use windlass_kernel::Millis;

    pub(crate) fn serialize<S: Serializer>(at: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::time(*at))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let at: Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(Millis(at.as_millisecond()))
    }

    pub(crate) mod option {
        use super::{Deserializer, Millis, Serializer};

        pub(crate) fn serialize<S: Serializer>(
            at: &Option<Millis>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => super::serialize(at, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Millis>, D::Error> {
            super::deserialize(deserializer).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_a_prefix_and_32_digits() {
        assert_eq!(execution_id(ExecutionId(0x1f)), "exec_0000000000000000000000000000001f");
        assert_eq!(workflow_id(26), "wf_0000000000000000000000000000001a");
    }

    #[test]
    fn times_have_milliseconds_always() {
        assert_eq!(time(Millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(Millis(1_769_428_845_007)), "2026-01-26T12:00:45.007Z");
        assert_eq!(time(Millis(i64::MAX)).len(), 24);
    }
}
