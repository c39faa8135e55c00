//! Compares expected rows with stored rows.

use crate::rows::{HeadRow, Rows};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

type Difference = (&'static str, String);

pub(super) fn rows(expected: &Rows, found: &Rows) -> Vec<Difference> {
    let mut differences = head(&expected.head, &found.head);
    if expected.ctx != found.ctx {
        differences.push(("contexts", "it is not the one of the journal".to_owned()));
    }
    let runs = |rows: &Rows| rows.runs.iter().map(|row| (row.run, row.after.clone())).collect();
    differences.extend(maps("step_runs", &runs(expected), &runs(found)));
    let parts = |rows: &Rows| {
        let entry = |row: &crate::rows::PartRow| ((row.part, row.key.clone()), (row.due, row.value.clone()));
        rows.parts.iter().map(entry).collect()
    };
    differences.extend(maps("parts", &parts(expected), &parts(found)));
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

fn maps<K: Ord + Debug, V: PartialEq>(
    table: &'static str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) -> Vec<Difference> {
    let missing_or_other = expected.iter().filter_map(|(key, row)| match found.get(key) {
        None => Some(format!("{key:?} is missing")),
        Some(other) if other != row => Some(format!("{key:?} is not what the journal says")),
        Some(_) => None,
    });
    let extra = found.keys().filter(|key| !expected.contains_key(key));
    let extra = extra.map(|key| format!("{key:?} must not be there"));
    missing_or_other.chain(extra).map(|what| (table, what)).collect()
}

pub(super) fn sets<K: Ord + Debug>(
    table: &'static str,
    expected: &BTreeSet<K>,
    found: &BTreeSet<K>,
) -> Vec<Difference> {
    let missing = expected.difference(found).map(|key| format!("{key:?} is missing"));
    let extra = found.difference(expected).map(|key| format!("{key:?} must not be there"));
    missing.chain(extra).map(|what| (table, what)).collect()
}
