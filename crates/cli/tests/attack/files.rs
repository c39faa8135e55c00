//! Other users of the machine: what they could read of data folders and backups.

use crate::rig::Place;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Files and folders under a path, and the path itself, that others may do anything with.
fn open_to_others(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let about = fs::symlink_metadata(path).unwrap();
    if !about.is_symlink() && about.mode() & 0o077 != 0 {
        found.push(path.to_owned());
    }
    if about.is_dir() {
        found.extend(fs::read_dir(path).unwrap().flat_map(|entry| open_to_others(&entry.unwrap().path())));
    }
    found
}

#[track_caller]
fn is_private(path: &Path) {
    assert_eq!(open_to_others(path), Vec::<PathBuf>::new());
}

const LARGE: &str = "- {step: a, tool: {kind: python, code: 'def main():\n    return \"x\" * 200000'}}\n";

#[test]
fn a_data_folder_and_its_backups_are_for_their_user_alone() {
    let place = Place::playing(&format!("workflow:\n{LARGE}"));
    place.windlass(&["run", "play.yaml"]).expect(0);
    is_private(&place.data());
    let server = place.serve();
    assert!(server.get("/api/v1/workflows").status().is_success());
    is_private(&place.data());
    place.windlass(&["admin", "backup", "copy"]).expect(0);
    is_private(&place.path("copy"));
    drop(server);
    // A copy of an earlier version, for all to read, becomes private again.
    for path in [place.path("copy"), place.path("copy/windlass.db")] {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    place.windlass(&["admin", "restore", "copy", "--data", "restored"]).expect(0);
    is_private(&place.path("restored"));
}

#[test]
fn a_data_folder_of_an_earlier_version_is_closed_at_the_next_start() {
    let place = Place::playing("workflow:\n- {step: a, tool: {kind: noop}}\n");
    place.windlass(&["run", "play.yaml"]).expect(0);
    for name in ["", "windlass.db", "lock"] {
        let path = place.data().join(name);
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    drop(place.serve());
    is_private(&place.data());
}
