//! Limits on the disk space of databases.

use super::Database;
use crate::failure::failure;
use std::path::Path;
use std::{fs, io};
use windlass_protocol::{Failure, codes};

/// Maximum number of files and folders of one tenant: a database may also have a journal, a log and an index, and each
/// takes an inode even when it is empty.
const FILES_MAX: usize = 4_000;

/// Disk space of files, and their number.
#[derive(Debug, Default, PartialEq, Eq)]
struct Usage {
    bytes: u64,
    files: usize,
}

impl Database {
    /// Returns the current maximum size of the database, from the size of the tenant's other databases.
    pub(super) fn room(&self, size: u64) -> Result<Option<u64>, Box<Failure>> {
        let usage = usage(&self.folder).map_err(|error| unreadable(&error))?;
        // The folders in its name are created with it.
        let made = Path::new(&self.name).components().count();
        if usage.files + made > FILES_MAX && !self.folder.join(&self.name).exists() {
            let message = format!(
                "this tenant has {} files and folders of databases and may have {FILES_MAX}: the database `{}` cannot \
                 be made; use one that exists",
                usage.files, self.name
            );
            return Err(failure(codes::LIMIT_EXCEEDED, message));
        }
        let left = self.quota.tenant.map(|tenant| tenant.saturating_sub(usage.bytes.saturating_sub(size)));
        Ok([self.quota.each, left].into_iter().flatten().min())
    }

    /// Returns whether the tenant's databases together exceed their limit: several statements may write at once.
    pub(super) fn is_full(&self) -> bool {
        let Some(tenant) = self.quota.tenant else { return false };
        usage(&self.folder).is_ok_and(|usage| usage.bytes > tenant)
    }

    pub(super) fn full(&self) -> Box<Failure> {
        let mib = |bytes: Option<u64>| {
            bytes.map_or_else(|| "any size".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
        };
        let message = format!(
            "the database `{}` is full: a database may have {} and all databases of a tenant {} together; delete rows, \
             or ask the operator to raise the settings `database-bytes` and `tenant-database-bytes`",
            self.name,
            mib(self.quota.each),
            mib(self.quota.tenant)
        );
        failure(codes::LIMIT_EXCEEDED, message)
    }
}

pub(super) fn unreadable(error: &io::Error) -> Box<Failure> {
    failure(codes::DB_NOT_OPENED, format!("the folder of databases cannot be used: {error}"))
}

/// Counts a folder and its subfolders; links are not followed. Every file counts, because an uncounted kind would have
/// no limit.
fn usage(folder: &Path) -> io::Result<Usage> {
    let mut usage = Usage::default();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            usage.files += 1;
            // A file that another statement removed meanwhile takes no space.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            } else {
                usage.bytes += metadata.len();
            }
        }
    }
    Ok(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::DatabaseQuota;

    #[test]
    fn everything_is_counted_however_many_folders_there_are() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..FILES_MAX {
            fs::create_dir(folder.path().join(format!("f{number}"))).unwrap();
        }
        for name in ["a.db", "f0/b.db", "z.db"] {
            fs::File::create(folder.path().join(name)).unwrap().set_len(400).unwrap();
        }
        let quota = DatabaseQuota { each: None, tenant: Some(1_000) };
        let database =
            |name: &str| Database { folder: folder.path().to_owned(), name: name.to_owned(), quota };
        assert!(database("a.db").is_full());
        assert_eq!(database("a.db").room(400).unwrap(), Some(200));
        let refused = database("new/deep/x.db").room(0).unwrap_err();
        assert_eq!(refused.code, "LIMIT_EXCEEDED", "{}", refused.message);
    }

    #[test]
    fn a_database_has_its_own_room_and_what_others_leave() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep/other.db"), [0; 600]).unwrap();
        fs::write(folder.path().join("own.db"), [0; 100]).unwrap();
        let check = |each: Option<u64>, tenant: Option<u64>, expected: Option<u64>| {
            let quota = DatabaseQuota { each, tenant };
            let database = Database { folder: folder.path().to_owned(), name: "own.db".to_owned(), quota };
            assert_eq!(database.room(100).unwrap(), expected, "{quota:?}");
        };
        check(None, None, None);
        check(Some(500), None, Some(500));
        check(Some(500), Some(1_000), Some(400));
        check(Some(300), Some(1_000), Some(300));
        check(Some(500), Some(10), Some(0));
    }
}
