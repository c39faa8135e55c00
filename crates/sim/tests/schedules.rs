//! Schedules over a simulated month: every nominal time has exactly one chain of attempts or one skip with a reason.

use windlass_sim::schedules::{ScheduleExtent, simulate};

#[test]
fn sch_01_sch_07_sch_13_sch_16_a_month_of_crashes_and_clock_changes_loses_no_occurrence_and_doubles_none() {
    let counts = simulate(ScheduleExtent { seed: 1, schedules: 30, days: 31 })
        .unwrap_or_else(|broken| panic!("{broken}"));
    // A simulation in which nothing happens would show nothing.
    assert!(counts.occurrences > 4_000 && counts.skipped > 100, "{counts:?}");
    assert!(counts.crashes > 20 && counts.freezes > 20 && counts.clock_jumps > 3, "{counts:?}");
    assert!(counts.fenced > 10 && counts.dead_letters > 100, "{counts:?}");
}

#[test]
fn the_same_seed_has_the_same_events() {
    let extent = ScheduleExtent { seed: 7, schedules: 5, days: 3 };
    assert_eq!(
        simulate(extent).map_err(|broken| broken.to_string()),
        simulate(extent).map_err(|broken| broken.to_string())
    );
}

#[test]
#[ignore = "takes some minutes"]
fn sch_07_a_thousand_schedules_over_a_month_lose_no_occurrence_and_double_none() {
    let extent = ScheduleExtent { seed: 1_001, schedules: 1_000, days: 31 };
    let counts = simulate(extent).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(counts.occurrences > 100_000, "{counts:?}");
}
