//! When a delivery that failed is tried again: soon at first, then over hours, for three days.

/// Seconds before each further try. A receiver that is deployed again is back within the first ones, one that is broken
/// over a weekend within the last.
const DELAYS_S: [u64; 12] = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 57_600, 86_400];
/// Share of a delay that chance may take or add, so that a receiver that comes back does not get all at once.
const JITTER: f64 = 0.1;
/// A receiver that says when (`Retry-After`) is believed up to here.
pub const SAID_MAX_MS: u64 = 86_400_000;

/// The delay after so many failed tries, from 1; None: it is given up. `random` is evenly spread over all its values.
#[must_use]
pub fn delay_ms(failed: u32, random: u32) -> Option<u64> {
    let index = usize::try_from(failed.checked_sub(1)?).ok()?;
    let base = *DELAYS_S.get(index)? * 1_000;
    let chance = f64::from(random) / f64::from(u32::MAX) * 2.0 - 1.0;
    let jitter = base as f64 * JITTER * chance;
    Some((base as f64 + jitter).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_go_on_over_hours_for_three_days_and_then_end() {
        let delays: Vec<u64> = (1..).map_while(|failed| delay_ms(failed, u32::MAX / 2)).collect();
        assert_eq!(delays.len(), DELAYS_S.len());
        assert!(delays.is_sorted());
        let hours = delays.iter().sum::<u64>() / 3_600_000;
        assert!((60..=84).contains(&hours), "{hours} hours");
        assert_eq!(delay_ms(13, 0), None);
    }

    #[test]
    fn chance_moves_a_delay_by_a_tenth_at_most() {
        assert_eq!((delay_ms(1, 0), delay_ms(1, u32::MAX)), (Some(4_500), Some(5_500)));
        assert_eq!(delay_ms(0, 0), None);
    }
}
