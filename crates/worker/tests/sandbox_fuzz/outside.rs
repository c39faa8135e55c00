//! Data that a statement must not touch: other files, and the state of its database.

use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with the databases of a tenant and with files of others.
pub(super) struct Surroundings {
    root: TempDir,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The process works in the root of the file system.
    top: Vec<PathBuf>,
}

/// Kept in the file, each with what it must be. A fresh connection reads them.
const STATE: [(&str, &str); 7] = [
    ("integrity_check", "ok"),
    ("journal_mode", "delete"),
    ("page_size", "4096"),
    ("encoding", "UTF-8"),
    ("auto_vacuum", "1"),
    ("user_version", "0"),
    ("application_id", "0"),
];

impl Surroundings {
    pub(super) fn new() -> Surroundings {
        let root = tempfile::tempdir().unwrap();
        for folder in ["tenant", "other"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let other = Connection::open(root.path().join("other/own.db")).unwrap();
        other.execute_batch("CREATE TABLE t (a, b); INSERT INTO t VALUES ('other', 1)").unwrap();
        drop(other);
        fs::write(root.path().join("secret.txt"), "secret").unwrap();
        let files = files_of(root.path());
        Surroundings { root, files, top: names_of(Path::new("/")) }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.root.path().join("tenant")
    }

    pub(super) fn elsewhere(&self) -> String {
        self.root.path().join("other/own.db").display().to_string()
    }

    /// Returns what is wrong after a statement, or None.
    pub(super) fn wrong(&self) -> Option<String> {
        let mut now = files_of(self.root.path());
        let own =
            ["own.db", "own.db-journal", "own.db-wal", "own.db-shm"].map(|name| self.folder().join(name));
        now.retain(|path, _| !own.contains(path));
        if now != self.files {
            return Some(format!("files have changed: {:?}", now.keys().collect::<Vec<_>>()));
        }
        if names_of(Path::new("/")) != self.top {
            return Some("a file was made in the root folder".to_owned());
        }
        wrong_in(&self.folder().join("own.db"))
    }

    /// Begins with an empty database.
    pub(super) fn renew(&self) {
        for entry in fs::read_dir(self.folder()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

fn names_of(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for path in names_of(folder) {
        match path.is_dir() {
            true => files.extend(files_of(&path)),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    files
}

fn wrong_in(database: &Path) -> Option<String> {
    if fs::metadata(database).is_ok_and(|file| file.len() == 0) {
        return None;
    }
    let conn = Connection::open(database).unwrap();
    for (pragma, expected) in STATE {
        let read = conn.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0));
        let text = match read {
            Ok(rusqlite::types::Value::Text(text)) => text,
            Ok(rusqlite::types::Value::Integer(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        if text != expected {
            return Some(format!("{pragma} is {text}"));
        }
    }
    let virtual_tables = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE 'create virtual%'";
    let count: i64 = conn.query_row(virtual_tables, [], |row| row.get(0)).unwrap();
    (count > 0).then(|| "there is a virtual table".to_owned())
}
