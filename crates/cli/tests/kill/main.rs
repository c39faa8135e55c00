//! The real program on a real disk, killed at random moments and restarted, and stopped by a full disk. Every execution
//! must end, and no committed step may run again.

mod ledger;
mod place;
mod random;
mod retry;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod saga;

use ledger::Ledger;
use place::{End, Place, STEPS};
use random::Random;
use std::time::{Duration, Instant};

/// Seed of the moments at which processes are killed. `WINDLASS_KILL_SEED` replaces it.
const SEED: u64 = 20_261_115;

/// Amount of work and number of kills.
struct Story {
    chains: usize,
    kills: usize,
    /// A process is killed within this time after it began, or after it took work.
    life: Duration,
}

/// Runs once, or with `WINDLASS_KILL_SECONDS` again with the next seeds until that time is over.
#[test]
fn killed_executions_continue_where_they_were() {
    let story = Story { chains: 300, kills: 50, life: Duration::from_millis(300) };
    let (first, seconds) = (number("WINDLASS_KILL_SEED", SEED), number("WINDLASS_KILL_SECONDS", 0));
    let (began, mut kills) = (Instant::now(), 0);
    for seed in first.. {
        println!("WINDLASS_KILL_SEED={seed}");
        kills += check(&story, seed);
        if began.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    println!("{kills} kills");
}

#[test]
#[ignore = "takes many minutes: cargo test --release -p windlass-cli --test kill -- --ignored --nocapture"]
fn killed_executions_continue_after_a_thousand_kills() {
    check(&Story { chains: 3_000, kills: 1_000, life: Duration::from_millis(600) }, SEED);
}

fn number(name: &str, default: u64) -> u64 {
    let read = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"));
    std::env::var(name).ok().map_or(default, read)
}

/// Returns how often the program was killed.
fn check(story: &Story, seed: u64) -> usize {
    let place = Place::new();
    let (mut random, mut ledger, mut accepted) = (Random(seed), Ledger::default(), Vec::new());
    while ledger.kills() < story.kills {
        let missing = story.chains.saturating_sub(ledger.executions());
        let end = match (missing, random.below(2)) {
            (0, 0) => place.start(&ledger, &["run", "--resume"]).kill(random.moment(story.life)),
            (0, _) => {
                let mut life = place.start(&ledger, &["run", "chain.yaml"]);
                accepted.extend(life.first_word());
                life.kill(random.moment(story.life))
            }
            (missing, _) => {
                let times = missing.to_string();
                let life = place.start(&ledger, &["run", "chain.yaml", "--times", &times]);
                life.kill(random.moment(story.life))
            }
        };
        ledger.close_life(&place, end);
    }
    carry_on(&place, &mut ledger);
    print_restarts(&mut accepted);
    ledger.kills()
}

/// Runs the executions to their end without further kills.
fn carry_on(place: &Place, ledger: &mut Ledger) {
    place.windlass(ledger, &["run", "--resume"]).expect(0);
    ledger.close_life(place, End::ByItself);
    ledger.judge(place);
    place.windlass(ledger, &["admin", "check"]).expect(0);
}

/// Prints the median and maximum time from the start of a process until it reports that it has accepted new work. Benchmarks
/// check how fast that must be.
fn print_restarts(accepted: &mut [Duration]) {
    accepted.sort();
    if let (Some(middle), Some(worst)) = (accepted.get(accepted.len() / 2), accepted.last()) {
        println!("{} restarts took new work within {middle:?} (middle), {worst:?} (worst)", accepted.len());
    }
}

#[test]
fn a_file_that_may_not_grow_stops_it_and_nothing_is_lost() {
    let place = Place::new();
    let mut ledger = Ledger::default();
    let output = place.limited(&ledger, 2 * 1024 * 1024, &["run", "chain.yaml", "--times", "40"]).expect(1);
    assert!(output.err.contains("error: the store cannot be read or written"), "{}", output.err);
    ledger.close_life(&place, End::ByItself);
    in_the_middle(&ledger);
    place.windlass(&ledger, &["admin", "check"]).expect(0);
    carry_on(&place, &mut ledger);
}

#[test]
#[ignore = "needs user namespaces: it mounts a disk of two megabytes"]
fn a_full_disk_stops_it_and_nothing_is_lost() {
    let place = Place::new();
    let mut ledger = Ledger::default();
    let output =
        place.on_small_disk(&ledger, 2 * 1024 * 1024, &["run", "chain.yaml", "--times", "40"]).expect(1);
    assert!(output.err.contains("error: the disk is full"), "{}", output.err);
    assert!(output.err.contains("free some space and start again"), "{}", output.err);
    ledger.close_life(&place, End::ByItself);
    in_the_middle(&ledger);
    carry_on(&place, &mut ledger);
}

fn in_the_middle(ledger: &Ledger) {
    let (all, done) = (ledger.executions() * STEPS, ledger.done());
    assert!(0 < done && done < all, "it was stopped in the middle, not after {done} of {all} steps");
}
