//! The simulator is worth something only if it sees a broken kernel: every sabotage must be caught, and soon.

use windlass_sim::sabotage::Sabotage;
use windlass_sim::world;

const SEEDS: u64 = 500;

/// The seed that caught it, and the rule that was seen broken.
fn caught(sabotage: Sabotage) -> Option<(u64, String)> {
    (1..=SEEDS)
        .find_map(|seed| world::run(seed, Some(sabotage)).err().map(|violation| (seed, violation.rule)))
}

#[test]
fn every_sabotage_is_caught_within_five_hundred_seeds() {
    let missed: Vec<&Sabotage> =
        Sabotage::ALL.iter().filter(|sabotage| caught(**sabotage).is_none()).collect();
    assert!(missed.is_empty(), "nobody saw {missed:?}");
}

/// Most must be seen from outside, not only by the kernel's own refusal of an illegal record.
#[test]
fn most_sabotages_are_seen_by_the_oracle_itself() {
    let by_oracle = |sabotage: &&Sabotage| {
        (1..=SEEDS).any(|seed| {
            world::run(seed, Some(**sabotage)).is_err_and(|v| v.rule != "legality" && v.rule != "K4")
        })
    };
    let seen = Sabotage::ALL.iter().filter(by_oracle).count();
    assert!(seen >= 24, "only {seen} of {}", Sabotage::ALL.len());
}
