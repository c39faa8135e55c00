//! A folder whose secrets are set, and everything that can be seen of it from outside.

use crate::rig::{CommandOutput, Place, files};
use std::fs;

/// Sets a secret as a script does, through a pipe.
#[track_caller]
pub fn try_set(place: &Place, name: &str, value: &[u8]) -> CommandOutput {
    CommandOutput::given(place.command(&["secrets", "set", name]), value)
}

#[track_caller]
pub fn set(place: &Place, name: &str, value: &str) -> CommandOutput {
    try_set(place, name, value.as_bytes()).expect(0)
}

/// Fails if a file of the data folder contains the bytes.
#[track_caller]
pub fn assert_nowhere_on_disk(place: &Place, needle: &[u8]) {
    for file in files(&place.path("data")) {
        let bytes = fs::read(&file).expect("a file");
        let found = bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!found, "`{}` is in {}", String::from_utf8_lossy(needle), file.display());
    }
}
