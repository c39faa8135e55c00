//! Mail from a second process, beside the engine that has the store.

use super::{Sqlite, connect, write};
use crate::commit::{Mail, MailId};
use crate::store::StoreError;
use std::path::Path;

impl Sqlite {
    /// Puts one letter into the inbox of an existing store, on disk before this returns. Waits for whoever writes at
    /// the moment.
    pub fn post(path: &Path, mail: &Mail) -> Result<MailId, StoreError> {
        connect::inspect_existing(path)?;
        // A statement alone is a transaction.
        write::accept(&connect::writing(path)?, mail)
    }
}
