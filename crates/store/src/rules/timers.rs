//! Timers that come due. A store keeps them in three tables; one list is made of them.

use crate::codec::{decode, encode};
use crate::store::{DueTimer, StoreError, StoreResult};
use windlass_kernel::{Execution, Millis, Phase, RunId, StepId, StepRun, Timer, TokenId};

/// Tables with timers, in the order in which timers of the same time are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerTable {
    /// The execution's own timer: its start or its deadline.
    Heads,
    /// Step-runs.
    Runs,
    /// Gates of tokens that wait for admission.
    Gates,
}

/// The place of a timer in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerPlace {
    pub due: Millis,
    pub table: TimerTable,
    /// Number of the execution in the order of the store.
    pub execution: i64,
    /// Key of the row within its execution.
    pub row: Vec<u8>,
}

impl TimerPlace {
    /// Returns the place of a timer of the execution with this number.
    #[must_use]
    pub fn of(timer: &DueTimer, execution: i64) -> TimerPlace {
        let (table, row) = match timer.timer {
            Timer::Start | Timer::Deadline => (TimerTable::Heads, Vec::new()),
            Timer::Backoff { run }
            | Timer::Delay { run }
            | Timer::Routing { run }
            | Timer::Manual { run }
            | Timer::Attempt { run, .. } => (TimerTable::Runs, run.0.to_be_bytes().to_vec()),
            Timer::Gate { step, token } => (TimerTable::Gates, encode(&(step, token))),
        };
        TimerPlace { due: timer.at, table, execution, row }
    }

    /// Returns the place in one table, exclusive, that a list continues from after a place in any table.
    #[must_use]
    pub fn resume(after: Option<&TimerPlace>, table: TimerTable) -> TimerPlace {
        let (due, execution, row) = match after {
            None => (Millis(i64::MIN), i64::MIN, Vec::new()),
            Some(place) if place.table == table => (place.due, place.execution, place.row.clone()),
            // Rows of a later table with the same time are still to be listed, those of an earlier one are not.
            Some(place) if place.table < table => (place.due, i64::MIN, Vec::new()),
            Some(place) => (place.due, i64::MAX, Vec::new()),
        };
        TimerPlace { due, table, execution, row }
    }
}

/// Returns whether timers of a table come due: a hold stops all but the execution's own, an end stops all but that of
/// the head, which an ended execution does not have.
#[must_use]
pub fn table_fires(table: TimerTable, held: bool, phase: Phase) -> bool {
    match table {
        TimerTable::Heads => true,
        TimerTable::Runs | TimerTable::Gates => !held && !phase.is_ended(),
    }
}

/// Returns the execution's own timer in a phase.
#[must_use]
pub fn head_timer(phase: Phase) -> Timer {
    if phase == Phase::Queued { Timer::Start } else { Timer::Deadline }
}

/// Returns the timer of a step-run, from its stored state.
pub fn run_timer(run: RunId, state: &[u8]) -> StoreResult<Timer> {
    let state: StepRun = decode(state)?;
    let timer = Execution::timer_of(run, &state).map(|(timer, _)| timer);
    timer.ok_or_else(|| StoreError::Undecodable(format!("step-run {run} is due but has no timer")))
}

/// Returns the timer of a gate, from the key of its row.
pub fn gate_timer(key: &[u8]) -> StoreResult<Timer> {
    let (step, token): (StepId, TokenId) = decode(key)?;
    Ok(Timer::Gate { step, token })
}

/// Merges timers of all tables, each with its place, into one list.
#[must_use]
pub fn merge_timers(mut found: Vec<(TimerPlace, DueTimer)>, limit: usize) -> Vec<DueTimer> {
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found.truncate(limit);
    found.into_iter().map(|(_, timer)| timer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::{ExecutionId, Outcome};

    fn place(due: i64, table: TimerTable, execution: i64) -> TimerPlace {
        TimerPlace { due: Millis(due), table, execution, row: Vec::new() }
    }

    #[test]
    fn a_list_continues_in_every_table_after_one_place() {
        use TimerTable::{Gates, Heads, Runs};
        let after = place(5, Runs, 7);
        let later = [place(5, Runs, 8), place(5, Gates, 1), place(6, Heads, 1)];
        let earlier = [place(5, Heads, 9), place(5, Runs, 6), place(4, Gates, 9), after.clone()];
        for table in [Heads, Runs, Gates] {
            let resume = TimerPlace::resume(Some(&after), table);
            for place in later.iter().filter(|place| place.table == table) {
                assert!(*place > resume, "{place:?} is listed");
            }
            for place in earlier.iter().filter(|place| place.table == table) {
                assert!(*place <= resume, "{place:?} was listed before");
            }
            assert!(place(i64::MIN + 1, table, 0) > TimerPlace::resume(None, table));
        }
    }

    #[test]
    fn timers_of_one_time_are_listed_by_table_and_execution() {
        let timer =
            |timer, at, execution| DueTimer { at: Millis(at), execution: ExecutionId(execution), timer };
        let run = Timer::Delay { run: RunId(2) };
        let gate = Timer::Gate { step: StepId(1), token: TokenId(3) };
        let sorted = [
            timer(gate, 1, 9),
            timer(Timer::Deadline, 2, 1),
            timer(Timer::Start, 2, 2),
            timer(run, 2, 1),
            timer(gate, 2, 1),
        ];
        let placed = |timer: &DueTimer| (TimerPlace::of(timer, timer.execution.0 as i64), *timer);
        let found: Vec<_> = sorted.iter().rev().map(placed).collect();
        assert_eq!(merge_timers(found.clone(), 9), sorted);
        assert_eq!(merge_timers(found, 2), sorted[..2]);
        assert_eq!(gate_timer(&placed(&sorted[4]).0.row), Ok(gate));
    }

    #[test]
    fn a_hold_and_an_end_stop_the_timers_of_step_runs_and_gates() {
        let ended = Phase::Ended(Outcome::Cancelled);
        for (held, phase, fires) in
            [(false, Phase::Running, true), (true, Phase::Running, false), (false, ended, false)]
        {
            assert_eq!(table_fires(TimerTable::Runs, held, phase), fires);
            assert_eq!(table_fires(TimerTable::Gates, held, phase), fires);
            assert!(table_fires(TimerTable::Heads, held, phase));
        }
        assert_eq!([head_timer(Phase::Queued), head_timer(Phase::Running)], [Timer::Start, Timer::Deadline]);
    }
}
