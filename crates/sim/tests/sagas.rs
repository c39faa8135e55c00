//! Sagas of up to 60 actions: judged from outside, and the same with pools of every size.

use std::sync::Arc;
use windlass_kernel::Net;
use windlass_sim::campaign::{self, Extent};
use windlass_sim::rng::Rng;
use windlass_sim::sabotage::Sabotage;
use windlass_sim::saga::{PoolShape, record, replay};
use windlass_sim::world::Worlds;
use windlass_sim::{generate, lower};

/// Enough for failures, timeouts, signals and cancels to meet in graphs of every size.
const SEEDS: u64 = 400;
/// Random graphs that are run with pools of every size.
const GRAPHS: u64 = 60;
/// The same number of units at a time, among more and more workers.
const SHAPES: [PoolShape; 3] = [
    PoolShape { workers: 1, slots: 64 },
    PoolShape { workers: 4, slots: 16 },
    PoolShape { workers: 16, slots: 4 },
];

#[test]
fn act_13_act_15_sagas_of_many_actions_are_undone_in_reverse_order_and_each_action_once() {
    let summary = campaign::run(Worlds::Sagas, 1, Extent::Seeds(SEEDS), &|_| {});
    let broken: Vec<String> = summary.violations.iter().map(|violation| violation.to_string()).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    for end in ["completed", "failed", "cancelled"] {
        let seen = summary.ends.get(&format!("actions {end}")).copied().unwrap_or(0);
        assert!(seen > 20, "only {seen} sagas ended {end}: {:?}", summary.ends);
    }
}

/// Every record of the journal, as JSON, is compared byte by byte: events, their order, times, fences and values.
#[test]
fn act_17_the_same_inputs_give_the_same_journal_with_1_4_and_16_workers() {
    let mut sizes = Vec::new();
    for seed in 1..=GRAPHS {
        let mut rng = Rng::new(seed);
        let scenario = generate::saga(&mut rng);
        sizes.push(scenario.steps.len());
        let net = Arc::new(Net::new(lower::lower(&scenario, 1_000)).expect("a net"));
        let recorded_with = *rng.pick(&SHAPES);
        let (inputs, journal) =
            record(&net, recorded_with, &mut rng).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for shape in SHAPES {
            let again = replay(&net, shape, &inputs);
            let again = again.unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
            assert!(again == journal, "seed {seed}: {shape:?} made another journal than {recorded_with:?}");
        }
    }
    assert!(sizes.iter().any(|size| *size > 50), "{sizes:?}");
}

/// Sabotages that only a judge of sagas is made for, with the rules that may catch them.
#[test]
fn sabotaged_sagas_are_caught() {
    let expected: [(Sabotage, &[&str]); 6] = [
        (Sabotage::CompensationForward, &["saga order", "hook", "legality"]),
        (Sabotage::CompensationForgotten, &["saga end", "status", "settled"]),
        (Sabotage::NonCompensableForgotten, &["saga summary"]),
        (Sabotage::FailedHookEndsCompensation, &["saga end", "status"]),
        (Sabotage::CompensationTooEarly, &["saga wait", "status", "hook", "legality"]),
        (Sabotage::FailFastKeepsRetries, &["saga fail-fast", "bell"]),
    ];
    let missed: Vec<String> = expected
        .iter()
        .filter_map(|(sabotage, rules)| {
            let broken = (1..=SEEDS).find_map(|seed| Worlds::Sagas.run(seed, Some(*sabotage)).err());
            let rule = broken.map(|violation| violation.rule);
            let is_known = rule.as_deref().is_some_and(|rule| rules.contains(&rule));
            (!is_known).then(|| format!("{sabotage:?}: {rule:?}"))
        })
        .collect();
    assert!(missed.is_empty(), "not seen for what they are: {missed:?}");
}
