//! `windlass admin backup`, `restore` and `prune`.

use crate::rig::{Place, files};
use serde_json::json;
use std::fs;

/// Large enough for an artifact.
const LARGE: &str = "workflow:\n- step: a\n  tool: {kind: python, code: 'result = \"x\" * 200000'}\n";

fn ran(place: &Place) -> String {
    place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned()
}

fn artifacts(place: &Place, data: &str) -> usize {
    let folders = fs::read_dir(place.path(data).join("artifacts")).into_iter().flatten().flatten();
    folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten()).count()
}

#[test]
fn a_backup_is_put_back_whole() {
    let place = Place::playing(LARGE);
    let id = ran(&place);
    let output = place.windlass(&["admin", "backup", "saved", "--json"]).expect(0).json();
    assert_eq!(output["artifacts"], json!(1), "{output}");
    ran(&place);
    place.windlass(&["admin", "restore", "saved", "--data", "back"]).expect(0);
    place.windlass(&["admin", "check", "--data", "back"]).expect(0);
    let then = place.windlass(&["executions", "get", &id, "--json", "--data", "back"]).expect(0).json();
    let now = place.windlass(&["executions", "get", &id, "--json"]).expect(0).json();
    assert_eq!(then, now);
    let listed = place.windlass(&["executions", "list", "--json", "--data", "back"]).expect(0);
    assert_eq!(listed.out.matches("executionId").count(), 1, "what came later is not in it: {}", listed.out);
    assert_eq!(artifacts(&place, "back"), 1);
}

#[test]
fn a_backup_overwrites_nothing_and_a_changed_one_is_refused() {
    let place = Place::playing(LARGE);
    ran(&place);
    place.windlass(&["admin", "backup", "saved"]).expect(0);
    place.windlass(&["admin", "backup", "saved"]).expect(1).says("exists; name a new folder");
    place.windlass(&["admin", "restore", "saved"]).expect(1).says("restore into another folder");
    place.windlass(&["admin", "restore", "elsewhere", "--data", "new"]).expect(1).says("is not a backup");
    place.windlass(&["admin", "backup", "other", "--data", "nowhere"]).expect(1).says("there is no data");
    let mut store = fs::read(place.path("saved/windlass.db")).expect("a store");
    let middle = store.len() / 2;
    store[middle] ^= 1;
    fs::write(place.path("saved/windlass.db"), store).expect("it is changed");
    place.windlass(&["admin", "restore", "saved", "--data", "new"]).expect(1).says("its digest differs");
    assert!(!place.path("new/windlass.db").exists(), "nothing was put there");
}

#[test]
fn backups_of_one_stem_keep_out_of_each_others_way() {
    let place = Place::playing(LARGE);
    ran(&place);
    fs::create_dir(place.path("bk.unfinished")).expect("a folder");
    fs::write(place.path("bk.unfinished/windlass.db"), "left by another").expect("a file");
    let days = ["bk.2026-11-15", "bk.2026-11-16", "bk.2026-11-17"];
    let running: Vec<_> = days.iter().map(|day| place.start(&["admin", "backup", day])).collect();
    for one in running {
        let (status, _, said) = one.ended();
        assert!(status.success(), "{said}");
    }
    for day in days {
        let back = format!("back-{day}");
        place.windlass(&["admin", "restore", day, "--data", &back]).expect(0);
        assert_eq!(artifacts(&place, &back), 1);
    }
    assert_eq!(unfinished(&place), ["bk.unfinished"], "what another left is not touched");
}

#[test]
fn a_backup_that_fails_leaves_nothing() {
    let place = Place::playing(LARGE);
    ran(&place);
    let artifact = files(&place.path("data/artifacts")).remove(0);
    fs::write(artifact, "something else").expect("it is changed");
    place.windlass(&["admin", "backup", "saved"]).expect(1).says("is damaged");
    assert!(unfinished(&place).is_empty(), "{:?}", unfinished(&place));
}

fn unfinished(place: &Place) -> Vec<String> {
    let names = fs::read_dir(place.path(".")).expect("a folder").flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.contains("unfinished")).collect()
}

#[test]
fn what_ended_long_ago_is_reported_and_then_forgotten() {
    let place = Place::playing(LARGE);
    let id = ran(&place);
    let kept = place.windlass(&["admin", "prune", "--json"]).expect(0).json();
    assert_eq!(kept["executions"], json!(0), "it ended just now");
    let output = place.windlass(&["admin", "prune", "--keep", "0s", "--dry-run", "--json"]).expect(0).json();
    assert_eq!((&output["executions"], &output["oldest"][0]["executionId"]), (&json!(1), &json!(id)));
    place.windlass(&["executions", "get", &id]).expect(0);
    place
        .windlass(&["admin", "prune", "--keep", "forever", "--dry-run"])
        .expect(0)
        .says("no execution would be deleted");
    place.windlass(&["admin", "prune", "--keep", "forever"]).expect(0).says("deleted 0 executions");
    let refused = place.windlass(&["admin", "prune", "--keep", "0d"]).expect(2);
    refused.says("delete every execution that has ended, 1 execution?").says("add --yes");
    place.windlass(&["executions", "get", &id]).expect(0);
    let gone = place.windlass(&["admin", "prune", "--keep", "0d", "--yes", "--json"]).expect(0).json();
    assert_eq!(gone["executions"], json!(1));
    place.windlass(&["executions", "get", &id]).expect(2);
    place.windlass(&["admin", "check"]).expect(0);
    assert_eq!(artifacts(&place, "data"), 1, "an artifact that was put there today may be named yet");
    place.windlass(&["admin", "prune", "--keep", "soon"]).expect(2).says("30d");
}
