//! The rules that derive evidence from a journal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../kernel/tests/semantics/drive.rs"]
#[expect(dead_code, reason = "the tests of the kernel use the rest")]
mod drive;

use drive::*;
use expect_test::expect;
use serde_json::{Value, json};
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_views::{EvidenceProjection, Projection, Timeline};

fn records(drive: &Drive) -> Vec<Value> {
    let (mut timeline, mut projection) = (Timeline::default(), EvidenceProjection::new(ExecutionId(7), None));
    let found = drive.journal.iter().flat_map(|record| {
        let entry = timeline.advance(&drive.net, record).unwrap();
        projection.project(&drive.net, record, &entry)
    });
    found.map(|record| json!(record)).collect()
}

/// A changed hash means that the hashes of all executions that have ended change, too. Raise `RULES_VERSION`, and name the
/// change in the changelog, before the new hash is put here.
#[test]
fn changed_rules_have_another_version() {
    let policy = Policy { join: Join::All, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![task("a", &[1]), task("b", &[2]), task("c", &[])]);
    drive.done("a");
    drive.fail("b", "X");
    let records = records(&drive);
    let shown: Vec<String> = records
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", text("actionId"), text("outcome"), record["rulesVersion"])
        })
        .collect();
    expect![[r#"
        a Succeeded 2
        b Failed 2
        c Skipped 2
        - Failed 2"#]]
    .assert_eq(&shown.join("\n"));
    expect!["b405401049cc4ef7645cd831e3da82768be83d7511a9733434bdabdef3f27778"]
        .assert_eq(records.last().unwrap()["hashSha256"].as_str().unwrap());
}
