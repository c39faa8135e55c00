//! The whole system on the seeds of the test command.

use windlass_sim::campaign::Extent;
use windlass_sim::system::{self, campaign};

/// Enough for every kind of crash to meet every kind of work many times.
const SEEDS: u64 = 2_000;

#[test]
fn two_thousand_systems_break_no_rule_and_repeat_exactly() {
    let summary = campaign::run(1, Extent::Seeds(SEEDS), &|_| {});
    let broken: Vec<String> = summary.violations.iter().map(|violation| violation.to_string()).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    assert_eq!((summary.seeds, summary.on_file), (SEEDS, SEEDS / 10));
    for end in ["completed", "partial", "failed", "cancelled"] {
        let seen = summary.ends.get(end).copied().unwrap_or(0);
        assert!(seen > 50, "only {seen} executions ended {end}: {:?}", summary.ends);
    }
    let counts = summary.counts;
    let enough = [
        ("executions", counts.executions, 3 * SEEDS),
        ("commits", counts.commits, 15 * SEEDS),
        ("deaths of the engine", counts.engine_deaths, SEEDS),
        ("deaths of workers", counts.worker_deaths, SEEDS / 4),
        ("failed writes", counts.failed_writes, SEEDS / 20),
        ("lost messages", counts.lost, SEEDS),
        ("doubled messages", counts.doubled, SEEDS / 2),
        ("letters", counts.mail, SEEDS / 2),
        ("compensated sagas", counts.undone_sagas, SEEDS / 40),
    ];
    for (what, seen, least) in enough {
        assert!(seen >= least, "only {seen} {what}, where {least} are expected: {counts:?}");
    }
}

/// `kept_systems.txt` holds one seed a line, with the rule it broke when it was found.
#[test]
fn systems_that_once_broke_a_rule_hold_now() {
    let lines = include_str!("kept_systems.txt").lines().filter(|line| !line.starts_with('#'));
    let seeds: Vec<u64> = lines
        .map(|line| line.split_whitespace().next().and_then(|seed| seed.parse().ok()).expect("a seed"))
        .collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        if let Err(violation) = system::run(seed, None) {
            panic!("{violation}");
        }
    }
}
