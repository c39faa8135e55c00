//! A folder whose secrets are set, and everything that can be seen of it from outside.

use crate::binary::{Place, Told};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Sets a secret as a script does, through a pipe.
#[track_caller]
pub fn try_set(place: &Place, name: &str, value: &[u8]) -> Told {
    let mut command = place.command(&["secrets", "set", name]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("the program runs");
    // A program that refuses the name reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(value);
    let told = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    Told { code: told.status.code().expect("an exit code"), out: text(told.stdout), err: text(told.stderr) }
}

#[track_caller]
pub fn set(place: &Place, name: &str, value: &str) -> Told {
    try_set(place, name, value.as_bytes()).expect(0)
}

/// Every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Fails if the bytes stand in any file of the data folder.
#[track_caller]
pub fn assert_nowhere_on_disk(place: &Place, needle: &[u8]) {
    for file in files(&place.path("data")) {
        let bytes = fs::read(&file).expect("a file");
        let found = bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!found, "`{}` is in {}", String::from_utf8_lossy(needle), file.display());
    }
}
