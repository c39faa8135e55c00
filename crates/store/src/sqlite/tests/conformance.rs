//! The suite of all stores.

use super::Folder;
use crate::conformance::Place;
use crate::sqlite::Sqlite;

impl Place for Folder {
    type Store = Sqlite;

    fn open(&self) -> Sqlite {
        Folder::open(self)
    }
}

crate::conformance_tests!(Folder::new());
