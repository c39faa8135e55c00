//! Compares expected rows with stored rows.

use crate::commit::Position;
use crate::rows::{HeadRow, Part, Rows};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::RunId;

type Difference = (&'static str, String);

pub(super) fn rows(expected: &Rows, found: &Rows) -> Vec<Difference> {
    let mut differences = head(&expected.head, &found.head);
    if expected.ctx != found.ctx {
        differences.push(("contexts", "it is not the one of the journal".to_owned()));
    }
    let runs = |rows: &Rows| rows.runs.iter().map(|row| (row.run, row.after.clone())).collect();
    let run_name = |run: &RunId| format!("step-run {run}");
    differences.extend(maps("step_runs", &runs(expected), &runs(found), run_name));
    let parts = |rows: &Rows| {
        let entry = |row: &crate::rows::PartRow| ((row.part, row.key.clone()), (row.due, row.value.clone()));
        rows.parts.iter().map(entry).collect()
    };
    let part_name = |(part, key): &(Part, Vec<u8>)| {
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("part {} x'{digits}'", part.name())
    };
    differences.extend(maps("parts", &parts(expected), &parts(found), part_name));
    differences
}

fn head(expected: &HeadRow, found: &HeadRow) -> Vec<Difference> {
    let columns = [
        ("version", expected.version == found.version),
        ("phase", expected.phase == found.phase),
        ("held", expected.held == found.held),
        ("at", expected.at == found.at),
        ("due", expected.due == found.due),
        ("goes_on", expected.goes_on == found.goes_on),
        ("state", expected.state == found.state),
    ];
    let wrong = columns.into_iter().filter(|(_, same)| !same);
    wrong.map(|(column, _)| ("heads", format!("`{column}` is not what the journal says"))).collect()
}

fn maps<K: Ord, V: PartialEq>(
    table: &'static str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
    name: impl Fn(&K) -> String,
) -> Vec<Difference> {
    let missing_or_other = expected.iter().filter_map(|(key, row)| match found.get(key) {
        None => Some(format!("{} is missing", name(key))),
        Some(other) if other != row => Some(format!("{} is not what the journal says", name(key))),
        Some(_) => None,
    });
    let extra = found.keys().filter(|key| !expected.contains_key(key));
    let extra = extra.map(|key| format!("{} must not be there", name(key)));
    missing_or_other.chain(extra).map(|what| (table, what)).collect()
}

/// A step-run whose value is kept, and the row that holds it.
type Fact = (RunId, Position);

pub(super) fn facts(expected: &BTreeSet<Fact>, found: &BTreeSet<Fact>) -> Vec<Difference> {
    let name = |(run, at): &Fact| format!("step-run {run} at position {}", at.0);
    let missing = expected.difference(found).map(|fact| format!("{} is missing", name(fact)));
    let extra = found.difference(expected).map(|fact| format!("{} must not be there", name(fact)));
    missing.chain(extra).map(|what| ("facts", what)).collect()
}
