//! Seeds in the test command.
use windlass_sim::world;
#[test]
fn seeds_hold() {
    let mut n = std::collections::BTreeMap::new();
    for seed in 0..2000 {
        match world::run(seed, None) {
            Ok(s) => *n.entry(format!("{:?} {}", s.dialect, s.status)).or_insert(0) += 1,
            Err(v) => panic!("{v}"),
        }
    }
    println!("{n:#?}");
}
