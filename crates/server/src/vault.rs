//! The secrets of a data folder: sealed in its store, opened with its master keys.

use crate::engine_secrets::EngineSecrets;
use crate::host::now;
use crate::problem::{Problem, ProblemCode};
use anyhow::{Context, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_engine::{Folder, FolderError};
use windlass_protocol::{ErrorClass, Failure};
use windlass_secrets::{
    KEY_VARIABLE, Keyring, Marks, MasterKeys, Sealed, SealedError, SecretId, Zeroizing, check_name,
    check_value, open, rewrap, seal,
};
use windlass_store::sqlite::{Sqlite, SqliteSecrets};
use windlass_store::{Audit, AuditSeal, SEAL_KEY_BYTES, Secrets, StoreError, StoredSecret, Tenant, Wrapped};

/// The server's own secret that marks are made under.
const MARKS: &str = ".marks";
/// The server's own secret that audit rows are sealed with, of the tenant `default`: the key in base64, and the number of
/// the last row that was written before there was one.
const SEAL: &str = ".seal";

/// Secrets of one tenant, and bytes of their values. All are read when one is set, so that they stay few.
const SECRETS_MAX: usize = 1_000;
const SECRET_BYTES_MAX: usize = 1 << 20;

/// Why a tenant cannot have another secret.
#[derive(Debug, thiserror::Error)]
#[error(
    "the tenant has {count} secrets of {} KiB; with this one it would have more than {SECRETS_MAX}, or more than {} MiB: \
     delete some first",
    .bytes >> 10, SECRET_BYTES_MAX >> 20
)]
pub struct TooManySecrets {
    count: usize,
    bytes: usize,
}

/// What others are told about the process while it makes the folder.
const WHAT: &str = "windlass secrets";

#[derive(Debug)]
pub struct LocalVault {
    store: SqliteSecrets,
    keys: MasterKeys,
}

impl LocalVault {
    /// Of a folder that has a store.
    pub fn of(folder: &Path, engine: EngineSecrets) -> anyhow::Result<LocalVault> {
        let store = Sqlite::secrets(&Folder::store(folder))?;
        let keys = MasterKeys::new(folder, engine.get(KEY_VARIABLE).map(str::to_owned));
        Ok(LocalVault { store, keys })
    }

    /// Makes the folder and its store if they are missing, or brings them up to date. Beside an engine that has the
    /// folder nothing of that is needed.
    pub fn make(folder: &Path, engine: EngineSecrets) -> anyhow::Result<LocalVault> {
        LocalVault::of(folder, engine.clone()).or_else(|error| match Folder::hold(folder, WHAT) {
            Ok(held) => {
                drop(Sqlite::open(&Folder::store(held.path()))?);
                LocalVault::of(folder, engine)
            }
            Err(FolderError::InUse { .. }) => Err(error),
            Err(other) => Err(other.into()),
        })
    }

    /// Seals the value as the next version; it is on disk when this returns, and with it who asked for it.
    pub fn set(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<StoredSecret> {
        check_name(name)?;
        check_value(value)?;
        self.put(tenant, name, value, audit)
    }

    /// Like `set`, under a name of the server's own, which no user can give.
    pub(crate) fn set_own(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<StoredSecret> {
        debug_assert!(is_own(name), "users cannot give the name {name}");
        self.put(tenant, name, value, audit)
    }

    fn put(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<StoredSecret> {
        let _lock = self.keys.lock()?;
        let all = self.store.all(None)?;
        let is_it = |secret: &StoredSecret| *secret.tenant == *tenant.0 && secret.name == name;
        // Who has lost the key that the audit log was sealed with can still set secrets under another one.
        let others = all.iter().filter(|secret| !is_it(secret) && secret.name != SEAL);
        let ring = self.ring_for(others)?;
        let there = all.iter().find(|secret| is_it(secret));
        if !is_own(name) {
            let others = all.iter().filter(|secret| *secret.tenant == *tenant.0 && !is_own(&secret.name));
            check_room(others.filter(|secret| !is_it(secret)), value)?;
        }
        let version = there.map_or(0, |there| there.version) + 1;
        let place = SecretId { tenant: &tenant.0, name, version };
        let Sealed { key, bytes } = seal(&ring, place, value.as_bytes())?;
        let secret = StoredSecret {
            tenant: tenant.to_string(),
            name: name.to_owned(),
            version,
            key: key.as_str().to_owned(),
            sealed: bytes,
            created_at: there.map_or_else(now, |there| there.created_at),
            updated_at: now(),
        };
        let audit = audit.map(|mut audit| {
            audit.details["version"] = json!(version);
            audit
        });
        match self.store.put(&secret, audit.as_ref())? {
            true => Ok(secret),
            false => bail!("secret `{name}` was changed at this moment by someone else; nothing was written"),
        }
    }

    /// What names the values that stand in definitions of the tenant, made when it is first needed. Names that were made
    /// under another one stay good: each is of its own value.
    pub(crate) fn marks(&mut self, tenant: &Tenant) -> anyhow::Result<Marks> {
        let key = match self.open(tenant, MARKS)? {
            Some(kept) => kept,
            None => {
                let mut random = Zeroizing::new([0; Marks::KEY_BYTES]);
                getrandom::fill(&mut *random).context("the system gives no random bytes")?;
                let text = Zeroizing::new(STANDARD.encode(*random));
                self.set_own(tenant, MARKS, &text, None)?;
                text
            }
        };
        let bytes = Zeroizing::new(STANDARD.decode(&*key).context("the key of marks is not base64")?);
        let key =
            <[u8; Marks::KEY_BYTES]>::try_from(&bytes[..]).context("the key of marks has another length")?;
        Ok(Marks::new(key))
    }

    /// The key that audit rows are sealed with; None while the folder has none. From then on what this vault changes is
    /// sealed, too.
    pub fn audit_seal(&mut self) -> anyhow::Result<Option<Arc<AuditSeal>>> {
        let Some(kept) = self.open(&Tenant::default(), SEAL)? else { return Ok(None) };
        let read = || {
            let (key, from) = kept.split_once(' ')?;
            let key = Zeroizing::new(STANDARD.decode(key).ok()?);
            let key = Zeroizing::new(<[u8; SEAL_KEY_BYTES]>::try_from(&key[..]).ok()?);
            Some(AuditSeal::new(&key, from.parse().ok()?))
        };
        let seal = Arc::new(read().context("the key of the audit log is damaged")?);
        self.store.seal_audit(seal.clone());
        Ok(Some(seal))
    }

    /// The same, made when there is none yet. Needs the master key, or makes one.
    pub fn make_audit_seal(&mut self) -> anyhow::Result<Arc<AuditSeal>> {
        if self.store.get(&Tenant::default().0, SEAL)?.is_none() {
            let mut random = Zeroizing::new([0; SEAL_KEY_BYTES]);
            getrandom::fill(&mut *random).context("the system gives no random bytes")?;
            let text = Zeroizing::new(format!("{} {}", STANDARD.encode(*random), self.store.last_audit()?));
            self.set_own(&Tenant::default(), SEAL, &text, None)?;
        }
        self.audit_seal()?.context("the key of the audit log was removed while it was read")
    }

    /// Sets it unless it has that value.
    pub fn keep(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<()> {
        // One that cannot be opened is told when it is set.
        let same = self.open(tenant, name).is_ok_and(|kept| kept.is_some_and(|kept| *kept == value));
        if same { Ok(()) } else { self.set(tenant, name, value, audit).map(drop) }
    }

    /// The first secret makes a key. Later ones need the keys of those that are there: with another one, half of the
    /// vault would be lost unnoticed.
    fn ring_for<'s>(&self, others: impl Iterator<Item = &'s StoredSecret>) -> anyhow::Result<Keyring> {
        let mut others = others.peekable();
        if others.peek().is_none() {
            return Ok(self.keys.load_or_create()?);
        }
        let repair = "nothing was written: put the key back, or delete what it cannot open with `windlass secrets delete`";
        let ring = self.keys.load().context(repair)?;
        let foreign = others.find_map(|other| match opened(&ring, other) {
            Err(error @ SealedError::NoKey { .. }) => Some(error),
            Ok(_) | Err(_) => None,
        });
        foreign.map_or(Ok(ring), |error| Err(anyhow::Error::from(error).context(repair)))
    }

    /// Those that users gave, in the order of their names.
    pub fn list(&mut self, tenant: &Tenant) -> anyhow::Result<Vec<StoredSecret>> {
        let all = self.store.all(Some(&tenant.0))?;
        Ok(all.into_iter().filter(|secret| !is_own(&secret.name)).collect())
    }

    /// Whether it was there.
    pub fn delete(&mut self, tenant: &Tenant, name: &str, audit: Option<&Audit>) -> anyhow::Result<bool> {
        Ok(!is_own(name) && self.store.delete(&tenant.0, name, audit)?)
    }

    /// A new master key for all secrets; the old ones are forgotten when every secret is under the new one. With keys
    /// in the variable, its first key is the new one.
    pub fn rotate(&mut self) -> anyhow::Result<Rotated> {
        let _lock = self.keys.lock()?;
        let ring = self.keys.load()?;
        if self.keys.are_in_variable() {
            let in_use = self.store.all(None)?.iter().all(|secret| secret.key == ring.newest().as_str());
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

    /// Names of secrets that the keys at hand do not open, and why the first of them does not.
    pub fn unreadable(&mut self) -> anyhow::Result<Option<(usize, anyhow::Error)>> {
        let all = self.store.all(None)?;
        if all.is_empty() {
            return Ok(None);
        }
        let ring = match self.keys.load() {
            Ok(ring) => ring,
            Err(error) => return Ok(Some((all.len(), error.into()))),
        };
        let mut errors: Vec<_> = all.iter().filter_map(|secret| opened(&ring, secret).err()).collect();
        let count = errors.len();
        Ok((count > 0).then(|| (count, errors.swap_remove(0).into())))
    }

    pub(crate) fn open(&mut self, tenant: &Tenant, name: &str) -> anyhow::Result<Option<Zeroizing<String>>> {
        let Some(secret) = self.store.get(&tenant.0, name)? else { return Ok(None) };
        let value = match opened(&self.keys.load()?, &secret) {
            // A rotation came between the row and the key: both are read again.
            Err(SealedError::NoKey { .. }) => {
                let Some(secret) = self.store.get(&tenant.0, name)? else { return Ok(None) };
                opened(&self.keys.load()?, &secret)?
            }
            value => value?,
        };
        text(value).map(Some)
    }

    fn rewrap(&mut self, ring: &Keyring) -> anyhow::Result<Rotated> {
        let mut given = 0;
        self.store.rewrap(|secret| -> anyhow::Result<Wrapped> {
            given += usize::from(!is_own(&secret.name));
            let rewrapped = rewrap(ring, place(secret), &sealed(secret));
            let Sealed { key, bytes } = rewrapped.context("nothing was changed")?;
            Ok(Wrapped { key: key.as_str().to_owned(), sealed: bytes })
        })?;
        Ok(Rotated { secrets: given, key: ring.newest().as_str().to_owned() })
    }
}

/// The vault as workers see it.
#[derive(Debug)]
pub struct SharedVault(Mutex<LocalVault>);

impl SharedVault {
    pub fn new(vault: LocalVault) -> SharedVault {
        SharedVault(Mutex::new(vault))
    }

    /// For requests. What a user can mend is told; what only the operator can is in the log.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut LocalVault) -> anyhow::Result<T>,
    ) -> Result<T, Problem> {
        work(&mut self.lock()).map_err(|error| {
            if let Some(refused) = error.downcast_ref::<windlass_secrets::Refused>() {
                return Problem::bad_request(refused.to_string());
            }
            if let Some(many) = error.downcast_ref::<TooManySecrets>() {
                return Problem::new(ProblemCode::LimitExceeded, many.to_string());
            }
            tracing::error!(error = format!("{error:#}"), "the vault could not be used");
            Problem::unavailable("the stored secrets cannot be used at the moment; the server's log says why")
        })
    }

    /// Opens a secret of the tenant for one of its steps.
    pub(crate) fn open_for_step(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Zeroizing<String>, Box<Failure>> {
        let missing = || {
            let message = format!("there is no secret `{name}`: store it with `windlass secrets set {name}`");
            Box::new(Failure::new(ErrorClass::Validation, "RESOURCE_NOT_FOUND", message))
        };
        if is_own(name) {
            return Err(missing());
        }
        let opened = self.lock().open(tenant, name);
        let unusable = |error: anyhow::Error| {
            Box::new(Failure::new(ErrorClass::Auth, "SECRET_UNUSABLE", format!("{error:#}")))
        };
        opened.map_err(unusable)?.ok_or_else(missing)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LocalVault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(value: Zeroizing<Vec<u8>>) -> anyhow::Result<Zeroizing<String>> {
    let text = std::str::from_utf8(&value).context("the secret is no text")?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// What a rotation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// Those that users gave.
    pub secrets: usize,
    pub key: String,
}

/// Names that begin with a dot are the server's: [`check_name`] refuses them.
fn is_own(name: &str) -> bool {
    name.starts_with('.')
}

/// Refuses a value for which a tenant with these other secrets has no room.
fn check_room<'s>(others: impl Iterator<Item = &'s StoredSecret>, value: &str) -> Result<(), TooManySecrets> {
    let (count, bytes) =
        others.fold((0, 0), |(count, bytes), secret| (count + 1, bytes + secret.sealed.len()));
    match count < SECRETS_MAX && bytes + value.len() <= SECRET_BYTES_MAX {
        true => Ok(()),
        false => Err(TooManySecrets { count, bytes }),
    }
}

fn place(secret: &StoredSecret) -> SecretId<'_> {
    SecretId { tenant: &secret.tenant, name: &secret.name, version: secret.version }
}

fn sealed(secret: &StoredSecret) -> Sealed {
    Sealed { key: windlass_secrets::KeyId::stored(&secret.key), bytes: secret.sealed.clone() }
}

fn opened(ring: &Keyring, secret: &StoredSecret) -> Result<Zeroizing<Vec<u8>>, SealedError> {
    open(ring, place(secret), &sealed(secret))
}
