//! Percentiles and rates.

use serde_json::{Value, json};
use std::time::Duration;

/// Latencies of one kind, in microseconds.
#[derive(Debug, Default, Clone)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    pub fn push(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest value that this share of all values does not exceed, in milliseconds; 0 without values.
    pub fn percentile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        let value = sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        f64::from(value) / 1_000.0
    }
}

/// Counts per second.
pub fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

pub fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

/// Formats a figure with as many digits as are significant.
pub fn rounded(value: f64) -> Value {
    let digits = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    let scale = 10f64.powi(digits);
    let value = (value * scale).round() / scale;
    if digits == 0 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(micros: impl IntoIterator<Item = u64>) -> Latencies {
        let mut all = Latencies::default();
        micros.into_iter().for_each(|micros| all.push(Duration::from_micros(micros)));
        all
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let check = |micros: &[u64], share, expected: f64| {
            let found = latencies(micros.iter().copied()).percentile_ms(share);
            assert!((found - expected).abs() < 1e-9, "{share} of {micros:?}: {found}, not {expected}");
        };
        check(&[], 0.5, 0.0);
        check(&[3_000], 0.5, 3.0);
        check(&[4_000, 1_000, 3_000, 2_000], 0.5, 2.0);
        check(&[4_000, 1_000, 3_000, 2_000], 0.99, 4.0);
        check(&[4_000, 1_000, 3_000, 2_000], 0.25, 1.0);
    }

    #[test]
    fn the_99th_of_a_thousand_leaves_ten_above_it() {
        assert!((latencies(1..=1_000).percentile_ms(0.99) - 0.99).abs() < 1e-9);
    }

    #[test]
    fn figures_are_shown_with_the_digits_they_have() {
        assert_eq!(rounded(31_234.567), json!(31_235));
        assert_eq!(rounded(12.345_678), json!(12.35));
        assert_eq!(rounded(0.123_456), json!(0.1235));
    }
}
