//! The seeds of the test command, and the seeds that once broke a rule.

use windlass_sim::campaign::{self, Extent};
use windlass_sim::world::{self, Worlds};

/// Enough for every primitive to meet every other one many times.
const SEEDS: u64 = 5_000;

#[test]
fn five_thousand_seeds_break_no_rule_and_repeat_exactly() {
    let summary = campaign::run(Worlds::Any, 1, Extent::Seeds(SEEDS), &|_| {});
    let broken: Vec<String> = summary.violations.iter().map(|violation| violation.to_string()).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    assert_eq!((summary.executions, summary.unjudged), (SEEDS as usize, 0));
    for dialect in ["plan", "playbook", "workflow", "actions"] {
        for end in ["completed", "failed", "cancelled"] {
            let seen = summary.ends.get(&format!("{dialect} {end}")).copied().unwrap_or(0);
            assert!(seen > 20, "only {seen} executions of {dialect} ended {end}: {:?}", summary.ends);
        }
    }
}

/// `kept.txt` holds one seed a line, with the rule it broke when it was found.
#[test]
fn seeds_that_once_broke_a_rule_hold_now() {
    let seeds: Vec<u64> = include_str!("kept.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(|seed| seed.parse().expect("a seed"))
        .collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        if let Err(violation) = world::run(seed, None) {
            panic!("{violation}");
        }
    }
}
