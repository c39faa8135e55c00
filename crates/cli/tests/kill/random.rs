//! Chance from a seed.

use std::time::Duration;

pub struct Random(pub u64);

impl Random {
    /// splitmix64
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    pub fn moment(&mut self, within: Duration) -> Duration {
        let micros = u64::try_from(within.as_micros()).expect("a short time");
        Duration::from_micros(self.below(micros))
    }
}
