//! Derivation of the rows that a commit writes from its changes: the only place where rows come from (K1).

use crate::codec::encode;
use crate::rows::{Class, HeadRow, LiveRun, Part, PartRow, Rows, RunRow, WHOLE};
use serde::Serialize;
use windlass_kernel::net::Affinity;
use windlass_kernel::{
    Change, Changes, Delta, Event, Execution, Facet, Fence, Head, Kind, LifeChange, Millis, Net, Record,
    RunChange, RunId, StepRun,
};

/// Rows of a commit: upserts, and deletes of what has ended. [`stored_rows`] are all rows there are.
#[must_use]
pub fn project(net: &Net, changes: &Changes, records: &[Record]) -> Rows {
    Rows {
        head: head(&changes.head, records),
        ctx: changes.ctx.then(|| encode(&changes.head.ctx)),
        runs: changes
            .runs
            .iter()
            .map(|(run, change)| run_row(*run, change))
            .chain(whole_row(net, &changes.head, records))
            .collect(),
        parts: parts(changes),
        facts: facts(net, records),
    }
}

/// Returns the rows that a store holds of an execution: those of everything that has not ended. `newest` are the records of
/// its last commit.
#[must_use]
pub fn stored_rows(net: &Net, state: &Execution<'_>, newest: &[Record]) -> Rows {
    let mut rows = project(net, &Changes::whole(state), newest);
    rows.runs.retain(|row| row.after.is_some());
    rows.runs.iter_mut().for_each(|row| row.before = None);
    rows
}

fn head(head: &Head, records: &[Record]) -> HeadRow {
    HeadRow {
        version: head.version,
        phase: head.phase,
        held: head.held,
        at: head.at,
        due: head.timer().map(|(_, due)| due),
        goes_on: matches!(records.last().map(|record| &record.event), Some(Event::Continued)),
        state: encode(head),
    }
}

fn run_row(run: RunId, change: &Change<Box<StepRun>, Kind>) -> RunRow {
    let live = |after: &StepRun| LiveRun {
        class: class(after.state.kind()),
        fence: after.fence,
        due: Execution::timer_of(run, after).map(|(_, due)| due),
        state: encode(after),
    };
    RunRow { run, before: change.before.map(class), after: change.after.as_deref().map(live) }
}

/// Returns the row of an execution that one worker takes as a whole: an offer like that of a step-run, from the creation
/// to the end.
fn whole_row(net: &Net, head: &Head, records: &[Record]) -> Option<RunRow> {
    if net.policy().affinity == Affinity::AnyWorker {
        return None;
    }
    let begins = |record: &Record| {
        matches!(record.event.facet(), Facet::Life(LifeChange::Created(_) | LifeChange::Forked(_)))
    };
    let before = (!records.iter().any(begins)).then_some(Class::Offered);
    let fence = Some(Fence::first(head.generation));
    let open = LiveRun { class: Class::Offered, fence, due: None, state: Vec::new() };
    let after = (!head.phase.is_ended()).then_some(open);
    (before.is_some() || after.is_some()).then_some(RunRow { run: WHOLE, before, after })
}

fn class(kind: Kind) -> Class {
    match kind {
        Kind::Offered => Class::Offered,
        Kind::Manual => Class::Asked,
        Kind::Waiting => Class::Routed,
        Kind::Ready | Kind::Delayed | Kind::Backoff | Kind::Child | Kind::PausedChild | Kind::Looping => {
            Class::Other
        }
    }
}

fn parts(changes: &Changes) -> Vec<PartRow> {
    let mut rows = Vec::new();
    take(&mut rows, Part::Arrived, &changes.arrived, |_| None);
    take(&mut rows, Part::Gated, &changes.gated, |gate| gate.deadline);
    take(&mut rows, Part::Join, &changes.joins, |_| None);
    take(&mut rows, Part::Ready, &changes.ready, |()| None);
    take(&mut rows, Part::Hungry, &changes.hungry, |()| None);
    take(&mut rows, Part::Scope, &changes.scopes, |_| None);
    take(&mut rows, Part::Region, &changes.regions, |_| None);
    take(&mut rows, Part::Latest, &changes.latest, |_| None);
    take(&mut rows, Part::Owed, &changes.owed, |_| None);
    take(&mut rows, Part::Parked, &changes.parked, |_| None);
    take(&mut rows, Part::Joining, &changes.joining, |_| None);
    rows
}

fn take<K: Serialize, V: Serialize>(
    rows: &mut Vec<PartRow>,
    part: Part,
    delta: &Delta<K, V>,
    due: impl Fn(&V) -> Option<Millis>,
) {
    rows.extend(delta.iter().map(|(key, change)| PartRow {
        part,
        key: encode(key),
        due: change.after.as_ref().and_then(&due),
        value: change.after.as_ref().map(encode),
    }));
}

/// Returns the step-runs whose values a later decision may read. Outputs that nothing reads are in the journal only.
pub(crate) fn facts(net: &Net, records: &[Record]) -> Vec<RunId> {
    let of = |(run, change): (RunId, RunChange<'_>)| {
        let output = change.output().filter(|_| net.reads_outputs());
        output.or(change.items()).map(|_| run)
    };
    records.iter().filter_map(|record| record.event.run_change()).filter_map(of).collect()
}
