//! The secrets of a data folder, encrypted in its store with its master keys.

use crate::database::{Database, DatabaseSecrets};
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
use windlass_protocol::{Failure, codes};
use windlass_secrets::{
    KEY_VARIABLE, Keyring, Marks, MasterKeys, Sealed, SealedError, SecretId, Zeroizing, check_name,
    check_value, open, rewrap, seal,
};
use windlass_store::{Audit, AuditSeal, SEAL_KEY_BYTES, Secrets, StoreError, StoredSecret, Tenant, Wrapped};

/// The server's own secret with the key of marks.
const MARKS: &str = ".marks";
/// The server's own secret with the key of the audit log, in the tenant `default`: the key in base64, and the number of the
/// last row without a seal.
const SEAL: &str = ".seal";
/// The server's own secret with the key of completion tokens.
const COMPLETION: &str = ".completion";
const COMPLETION_KEY_BYTES: usize = 32;

/// Maximum number of secrets of one tenant, and of their bytes. All are read when one is set, so they must be few.
const SECRETS_MAX: usize = 1_000;
const SECRET_BYTES_MAX: usize = 1 << 20;

/// Refusal of a secret beyond the limits of a tenant.
#[derive(Debug, thiserror::Error)]
#[error(
    "the tenant has {count} secrets of {} KiB and may have {SECRETS_MAX} secrets of {} MiB; delete some first",
    .bytes >> 10, SECRET_BYTES_MAX >> 20
)]
pub struct TooManySecrets {
    count: usize,
    bytes: usize,
}

/// Description of the process in the lock file of the folder.
const WHAT: &str = "windlass secrets";

#[derive(Debug)]
pub struct LocalVault {
    store: DatabaseSecrets,
    keys: MasterKeys,
}

impl LocalVault {
    /// Opens the vault of a folder with a store.
    pub fn of(folder: &Path, engine: EngineSecrets) -> anyhow::Result<LocalVault> {
        let store = Database::secrets(&Folder::store(folder))?;
        let keys = MasterKeys::new(folder, engine.get(KEY_VARIABLE).map(str::to_owned));
        Ok(LocalVault { store, keys })
    }

    /// Opens the vault of a folder, and creates or migrates folder and store unless an engine holds the folder.
    pub fn make(folder: &Path, engine: EngineSecrets) -> anyhow::Result<LocalVault> {
        LocalVault::of(folder, engine.clone()).or_else(|error| match Folder::hold(folder, WHAT) {
            Ok(held) => {
                drop(Database::open(&Folder::store(held.path()))?);
                LocalVault::of(folder, engine)
            }
            Err(FolderError::InUse { .. }) => Err(error),
            Err(other) => Err(other.into()),
        })
    }

    /// Encrypts the value as the next version. When this returns, it and its audit entry are on disk.
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

    /// Sets one of the server's own names like `set`; users cannot set these names.
    pub(crate) fn set_own(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<StoredSecret> {
        debug_assert!(is_own(name), "{name} is not one of the server's own names");
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
        // Without the key of the audit log, secrets can still be set under another key.
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
            false => bail!(
                "secret `{name}` was changed by another process at the same time; nothing was written, retry"
            ),
        }
    }

    /// Returns the key that names literal values in definitions of the tenant, created when it is first needed. Names made
    /// with an earlier key stay valid.
    pub(crate) fn marks(&mut self, tenant: &Tenant) -> anyhow::Result<Marks> {
        self.own_key(tenant, MARKS).map(|key| Marks::new(*key))
    }

    /// Returns the key of the completion tokens of the tenant; None if there is none and it may not be created.
    pub(crate) fn completion_key(
        &mut self,
        tenant: &Tenant,
        creates: bool,
    ) -> anyhow::Result<Option<Zeroizing<[u8; COMPLETION_KEY_BYTES]>>> {
        if !creates && self.open(tenant, COMPLETION)?.is_none() {
            return Ok(None);
        }
        self.own_key(tenant, COMPLETION).map(Some)
    }

    /// Returns a key of the server, created if there is none. Of two processes that create it, one succeeds.
    fn own_key<const BYTES: usize>(
        &mut self,
        tenant: &Tenant,
        name: &str,
    ) -> anyhow::Result<Zeroizing<[u8; BYTES]>> {
        let key = match self.open(tenant, name)? {
            Some(kept) => kept,
            None => {
                let mut random = Zeroizing::new([0; BYTES]);
                getrandom::fill(&mut *random).context("the system returned no random bytes")?;
                let text = Zeroizing::new(STANDARD.encode(*random));
                self.set_own(tenant, name, &text, None)?;
                text
            }
        };
        let bytes =
            Zeroizing::new(STANDARD.decode(&*key).with_context(|| format!("the key {name} is not base64"))?);
        let key = <[u8; BYTES]>::try_from(&bytes[..]);
        key.map(Zeroizing::new).with_context(|| format!("the key {name} has another length"))
    }

    /// Returns the key that seals audit rows; None while the folder has none. From then on, changes of this vault are sealed.
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

    /// Returns the key that seals audit rows, created if there is none. Requires the master key, or creates one.
    pub(crate) fn make_audit_seal(&mut self) -> anyhow::Result<Arc<AuditSeal>> {
        if self.store.get(&Tenant::default().0, SEAL)?.is_none() {
            let mut random = Zeroizing::new([0; SEAL_KEY_BYTES]);
            getrandom::fill(&mut *random).context("the system returned no random bytes")?;
            let text = Zeroizing::new(format!("{} {}", STANDARD.encode(*random), self.store.last_audit()?));
            self.set_own(&Tenant::default(), SEAL, &text, None)?;
        }
        self.audit_seal()?.context("the key of the audit log was removed while it was read")
    }

    /// Sets a secret unless it has this value.
    pub(crate) fn set_if_changed(
        &mut self,
        tenant: &Tenant,
        name: &str,
        value: &str,
        audit: Option<Audit>,
    ) -> anyhow::Result<()> {
        // `set` reports a secret that cannot be decrypted.
        let same = self.open(tenant, name).is_ok_and(|kept| kept.is_some_and(|kept| *kept == value));
        if same { Ok(()) } else { self.set(tenant, name, value, audit).map(drop) }
    }

    /// Returns the keys for a new secret. The first secret creates a key. Later ones require the keys of all others, or
    /// half of the vault would be lost unnoticed.
    fn ring_for<'s>(&self, others: impl Iterator<Item = &'s StoredSecret>) -> anyhow::Result<Keyring> {
        let mut others = others.peekable();
        if others.peek().is_none() {
            return Ok(self.keys.load_or_create()?);
        }
        let repair = "nothing was written: restore the key, or delete the secrets that it cannot decrypt with `windlass secrets delete`";
        let ring = self.keys.load().context(repair)?;
        let foreign = others.find_map(|other| match opened(&ring, other) {
            Err(error @ SealedError::NoKey { .. }) => Some(error),
            Ok(_) | Err(_) => None,
        });
        foreign.map_or(Ok(ring), |error| Err(anyhow::Error::from(error).context(repair)))
    }

    /// Returns the secrets of users, ordered by name.
    pub fn list(&mut self, tenant: &Tenant) -> anyhow::Result<Vec<StoredSecret>> {
        let all = self.store.all(Some(&tenant.0))?;
        Ok(all.into_iter().filter(|secret| !is_own(&secret.name)).collect())
    }

    /// Deletes a secret, and reports whether it existed.
    pub fn delete(&mut self, tenant: &Tenant, name: &str, audit: Option<&Audit>) -> anyhow::Result<bool> {
        Ok(!is_own(name) && self.store.delete(&tenant.0, name, audit)?)
    }

    /// Encrypts all secrets with a new master key, and removes the old keys afterwards. With keys in the variable, its first
    /// key is the new one.
    pub fn rotate(&mut self) -> anyhow::Result<Rotated> {
        let _lock = self.keys.lock()?;
        let ring = self.keys.load()?;
        if self.keys.are_in_variable() {
            let in_use = self.store.all(None)?.iter().all(|secret| secret.key == ring.newest().as_str());
            if in_use {
                bail!(
                    "every secret is already encrypted with the first key of {KEY_VARIABLE}\n  hint: put a new key in front of it, `head -c 32 /dev/urandom | base64`, then rotate, then remove the old one"
                );
            }
            return self.rewrap(&ring);
        }
        // The file has both keys until every secret is encrypted with the new one.
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

    /// Returns the number of secrets that cannot be decrypted, and the error of the first.
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
            // A rotation happened between the two reads: both are repeated.
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

/// The vault, shared by requests and workers.
#[derive(Debug)]
pub struct SharedVault(Mutex<LocalVault>);

impl SharedVault {
    pub fn new(vault: LocalVault) -> SharedVault {
        SharedVault(Mutex::new(vault))
    }

    /// Runs an operation of a request. Errors that the user can repair are returned; others are logged for the operator.
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
            tracing::error!(error = format!("{error:#}"), "cannot use the vault");
            Problem::unavailable("the stored secrets cannot be used; the log of the server has the reason")
        })
    }

    /// Decrypts a secret of the tenant for one of its steps.
    pub(crate) fn open_for_step(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Zeroizing<String>, Box<Failure>> {
        let missing = || {
            let message = format!("there is no secret `{name}`: store it with `windlass secrets set {name}`");
            Box::new(Failure::new(codes::RESOURCE_NOT_FOUND, message))
        };
        if is_own(name) {
            return Err(missing());
        }
        let opened = self.lock().open(tenant, name);
        let unusable =
            |error: anyhow::Error| Box::new(Failure::new(codes::SECRET_UNUSABLE, format!("{error:#}")));
        opened.map_err(unusable)?.ok_or_else(missing)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LocalVault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(value: Zeroizing<Vec<u8>>) -> anyhow::Result<Zeroizing<String>> {
    let text = std::str::from_utf8(&value).context("the secret is not UTF-8")?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// Number of secrets of users.
    pub secrets: usize,
    pub key: String,
}

/// Reports whether a name is one of the server's own: it begins with a dot, which [`check_name`] refuses.
fn is_own(name: &str) -> bool {
    name.starts_with('.')
}

/// Refuses a value beyond the limits of a tenant with these other secrets.
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
