//! The database of a server. This is the only file that names it: another database gets its types here, and everything else
//! reads through the traits of the store's port.

use windlass_store::sqlite::{Sqlite, SqliteReader, SqliteSecrets};
use windlass_store::{Secrets, ServerReader, Store};

/// The store that a server opens and its engine writes.
pub(crate) type Database = Sqlite;

/// Reads the store of a server; see [`ServerReader`] for what it reads.
pub(crate) type DatabaseReader = SqliteReader;

/// The encrypted secrets of a server.
pub(crate) type DatabaseSecrets = SqliteSecrets;

/// A server needs nothing of its database but the port, and functions that open it.
const fn check_port<S: Store<Reader = R>, R: ServerReader, V: Secrets>() {}
const _: () = check_port::<Database, DatabaseReader, DatabaseSecrets>();

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a source folder can be read");
        let paths = entries.map(|entry| entry.expect("an entry of a source folder").path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn no_other_file_names_the_database() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let files = sources(&root);
        assert!(files.len() > 100, "{} files", files.len());
        let others = files.into_iter().filter(|path| !path.ends_with("database.rs"));
        let naming: Vec<PathBuf> = others
            .filter(|path| {
                let text = fs::read_to_string(path).expect("a source file is text");
                ["store::sqlite", "SqliteReader", "SqliteSecrets"].iter().any(|name| text.contains(name))
            })
            .collect();
        assert!(naming.is_empty(), "{naming:?} must use the types of database.rs");
    }
}
