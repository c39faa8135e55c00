//! Delays that spread the starts of occurrences with the same nominal time.

use jiff::{SignedDuration, Timestamp};

/// Returns the time at which an occurrence starts: within the jitter after its nominal time. It depends on the key of the
/// occurrence alone, so every server and every restart compute the same time.
#[must_use]
pub fn spread_due_time(occurrence_key: &str, nominal: Timestamp, jitter_seconds: u32) -> Timestamp {
    let width_ms = u64::from(jitter_seconds) * 1_000 + 1;
    let delay_ms = mix(occurrence_key.as_bytes()) % width_ms;
    let delay = SignedDuration::from_millis(i64::try_from(delay_ms).unwrap_or(i64::MAX));
    nominal.checked_add(delay).unwrap_or(nominal)
}

/// Hashes with FNV-1a and then the final step of SplitMix64: keys that differ in one digit have unrelated delays.
fn mix(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay_ms(key: &str, jitter_seconds: u32) -> i64 {
        let nominal = Timestamp::UNIX_EPOCH;
        spread_due_time(key, nominal, jitter_seconds).duration_since(nominal).as_millis() as i64
    }

    #[test]
    fn without_jitter_an_occurrence_starts_at_its_nominal_time() {
        assert_eq!((0..100).map(|n| delay_ms(&format!("sch_{n}"), 0)).max(), Some(0));
    }

    #[test]
    fn delays_are_the_same_every_time_and_fill_the_whole_width() {
        let delays = || (0..1_000).map(|n| delay_ms(&format!("sch_{n}:2026-01-01T00:00:00Z"), 60));
        assert!(delays().eq(delays()));
        assert!(delays().all(|delay| (0..=60_000).contains(&delay)));
        // A thousand delays in sixty seconds: each second has about 17.
        let per_second = delays().fold([0; 61], |mut counts, delay| {
            counts[(delay / 1_000) as usize] += 1;
            counts
        });
        assert!(per_second[..60].iter().all(|count| (3..=40).contains(count)), "{per_second:?}");
    }
}
