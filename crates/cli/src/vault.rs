//! The secrets of a data folder: sealed in its store, opened with its master keys.

use crate::embedded::now;
use anyhow::{Context, bail};
use std::path::Path;
use windlass_engine::{Folder, FolderError};
use windlass_secrets::{
    KEY_VARIABLE, Keyring, MasterKeys, Place, Sealed, SealedError, Zeroizing, check_name, check_value, open,
    rewrap, seal,
};
use windlass_store::sqlite::{Sqlite, SqliteSecrets};
use windlass_store::{Secrets, StoreError, StoredSecret, TENANT, Wrapped};

/// What others are told about the process while it makes the folder.
const WHAT: &str = "windlass secrets";

#[derive(Debug)]
pub struct LocalVault {
    store: SqliteSecrets,
    keys: MasterKeys,
}

impl LocalVault {
    /// Of a folder that has a store.
    pub fn of(folder: &Path) -> anyhow::Result<LocalVault> {
        let store = Sqlite::secrets(&Folder::store(folder))?;
        Ok(LocalVault { store, keys: MasterKeys::new(folder, std::env::var(KEY_VARIABLE).ok()) })
    }

    /// Makes the folder and its store if they are missing, or brings them up to date. Beside an engine that has the
    /// folder nothing of that is needed.
    pub fn make(folder: &Path) -> anyhow::Result<LocalVault> {
        LocalVault::of(folder).or_else(|error| match Folder::hold(folder, WHAT) {
            Ok(held) => {
                drop(Sqlite::open(&Folder::store(held.path()))?);
                LocalVault::of(folder)
            }
            Err(FolderError::InUse { .. }) => Err(error),
            Err(other) => Err(other.into()),
        })
    }

    /// Seals the value as the next version; it is on disk when this returns.
    pub fn set(&mut self, name: &str, value: &str) -> anyhow::Result<StoredSecret> {
        check_name(name)?;
        check_value(value)?;
        let _lock = self.keys.lock()?;
        let all = self.store.all()?;
        let ring = self.ring_for(&all)?;
        let there = all.into_iter().find(|secret| secret.name == name);
        let version = there.as_ref().map_or(0, |there| there.version) + 1;
        let Sealed { key, bytes } = seal(&ring, place(name, version), value.as_bytes())?;
        let secret = StoredSecret {
            name: name.to_owned(),
            version,
            key: key.as_str().to_owned(),
            sealed: bytes,
            created_at: there.map_or_else(now, |there| there.created_at),
            updated_at: now(),
        };
        match self.store.put(&secret)? {
            true => Ok(secret),
            false => bail!("secret `{name}` was changed at this moment by someone else; nothing was written"),
        }
    }

    /// The first secret makes a key. Later ones need the key of those that are there: with another one, half of the
    /// vault would be lost unnoticed.
    fn ring_for(&self, all: &[StoredSecret]) -> anyhow::Result<Keyring> {
        let Some(first) = all.first() else { return Ok(self.keys.load_or_create()?) };
        let ring = self.keys.load().map_err(anyhow::Error::from);
        let usable = ring.and_then(|ring| opened(&ring, first).map(|_| ring).map_err(Into::into));
        usable.context(
            "nothing was written: put the key back, or delete what it cannot open with `windlass secrets delete`",
        )
    }

    /// In the order of their names.
    pub fn list(&mut self) -> anyhow::Result<Vec<StoredSecret>> {
        Ok(self.store.all()?)
    }

    /// Whether it was there.
    pub fn delete(&mut self, name: &str) -> anyhow::Result<bool> {
        Ok(self.store.delete(name)?)
    }

    /// A new master key for all secrets; the old ones are forgotten when every secret is under the new one. With keys
    /// in the variable, its first key is the new one.
    pub fn rotate(&mut self) -> anyhow::Result<Rotated> {
        let _lock = self.keys.lock()?;
        let ring = self.keys.load()?;
        if self.keys.are_in_variable() {
            let in_use = self.store.all()?.iter().all(|secret| secret.key == ring.newest().as_str());
            if in_use {
                bail!(
                    "every secret is under the first key of {KEY_VARIABLE} already\n  hint: put a new key in front of it, `head -c 32 /dev/urandom | base64`, then rotate, then remove the old one"
                );
            }
            return self.rewrap(&ring);
        }
        // At every moment the file holds the keys of what is stored: both, until all of it is under the new one.
        let both = ring.renewed()?;
        self.keys.replace(&both)?;
        match self.rewrap(&both) {
            Ok(rotated) => self.keys.replace(&both.newest_alone()).map(|()| rotated).map_err(Into::into),
            Err(error) => {
                if error.downcast_ref::<StoreError>().is_none() {
                    self.keys.replace(&ring)?;
                }
                Err(error)
            }
        }
    }

    fn rewrap(&mut self, ring: &Keyring) -> anyhow::Result<Rotated> {
        let secrets = self.store.rewrap(|secret| -> anyhow::Result<Wrapped> {
            let rewrapped = rewrap(ring, place(&secret.name, secret.version), &sealed(secret));
            let Sealed { key, bytes } = rewrapped.context("nothing was changed")?;
            Ok(Wrapped { key: key.as_str().to_owned(), sealed: bytes })
        })?;
        Ok(Rotated { secrets, key: ring.newest().as_str().to_owned() })
    }
}

/// What a rotation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    pub secrets: usize,
    pub key: String,
}

fn place(name: &str, version: u32) -> Place<'_> {
    Place { tenant: TENANT, name, version }
}

fn sealed(secret: &StoredSecret) -> Sealed {
    Sealed { key: windlass_secrets::KeyId::stored(&secret.key), bytes: secret.sealed.clone() }
}

fn opened(ring: &Keyring, secret: &StoredSecret) -> Result<Zeroizing<Vec<u8>>, SealedError> {
    open(ring, place(&secret.name, secret.version), &sealed(secret))
}
