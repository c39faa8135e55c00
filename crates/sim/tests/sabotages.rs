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
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

/// Rules that the kernel and the invariants check. The oracle checks all others.
const FROM_INSIDE: [&str; 13] =
    ["legality", "census", "liveness", "bad input", "K1", "K2", "K4", "K5", "K6", "K12", "R4", "R5", "R12"];

/// Most must be seen from outside, not only by the kernel's own refusal of an illegal record.
#[test]
fn most_sabotages_are_seen_by_the_oracle_itself() {
    let by_oracle = |sabotage: &&Sabotage| {
        let seen = |seed| world::run(seed, Some(**sabotage)).err();
        (1..=SEEDS).filter_map(seen).any(|violation| !FROM_INSIDE.contains(&violation.rule.as_str()))
    };
    let missed: Vec<&Sabotage> = Sabotage::ALL.iter().filter(|sabotage| !by_oracle(sabotage)).collect();
    assert!(missed.len() <= 5, "the oracle alone does not see {missed:?}");
}
