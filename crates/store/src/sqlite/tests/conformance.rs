//! The suite of all stores.

use super::Folder;
use crate::conformance::{ServerSite, StoreSite};
use crate::sqlite::{Sqlite, SqliteSecrets};

impl StoreSite for Folder {
    type Store = Sqlite;

    fn open(&self) -> Sqlite {
        Folder::open(self)
    }
}

impl ServerSite for Folder {
    type Secrets = SqliteSecrets;

    fn secrets(&self) -> SqliteSecrets {
        Sqlite::secrets(&self.path()).unwrap()
    }
}

crate::conformance_tests!(Folder::new());

mod server {
    crate::conformance_tests!(server super::Folder::new());
}
