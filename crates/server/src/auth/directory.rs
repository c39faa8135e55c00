//! All tenants and tokens, in memory. Only this process writes them, and a row is on disk before it is inserted here, so the
//! memory is never stale.

use super::{Digest, Role};
use crate::limits::{Rate, TENANT_RATE};
use crate::settings::Settings;
use anyhow::Context;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;
use windlass_kernel::Millis;
use windlass_store::{Access, Entry, StoreError, StoredTenant, StoredToken, Tenant, TenantLimits};

/// Time of the last use of a token that was never used.
const NEVER: i64 = i64::MIN;

/// Prefix of the ids of sessions of the web page. A session acts as the user whose link began it.
pub(crate) const SESSION_PREFIX: &str = "sess_";

/// The holder of a token.
#[derive(Debug)]
pub struct User {
    pub token: StoredToken,
    pub role: Role,
    /// Time of the last use in milliseconds, or `NEVER`.
    used_at: AtomicI64,
    /// The value of `used_at` on disk.
    stored_at: AtomicI64,
}

#[derive(Debug, Default)]
pub struct Directory {
    known: RwLock<Known>,
    /// Notified of every revoked token.
    revoked: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Known {
    tenants: BTreeMap<Tenant, StoredTenant>,
    by_digest: HashMap<Digest, Arc<User>>,
}

impl Directory {
    pub fn load(reader: &mut impl Access) -> anyhow::Result<Directory> {
        let directory = Directory::default();
        reader.tenants()?.into_iter().for_each(|tenant| directory.put_tenant(tenant));
        for token in reader.tokens()? {
            directory.put_token(token).context("the store has a token that cannot be used")?;
        }
        Ok(directory)
    }

    /// Inserts or replaces a tenant that is on disk.
    pub fn put_tenant(&self, tenant: StoredTenant) {
        self.write().tenants.insert(tenant.id.clone(), tenant);
    }

    /// Removes a token that was deleted from the disk.
    pub fn remove_token(&self, digest: &Digest) {
        self.write().by_digest.remove(digest);
        self.revoked.send_replace(());
    }

    /// Inserts or replaces a token that is on disk.
    pub fn put_token(&self, token: StoredToken) -> Result<(), StoreError> {
        let unknown = || StoreError::Corrupt(format!("token {} has the role `{}`", token.id, token.role));
        let role = Role::of_name(&token.role).ok_or_else(unknown)?;
        let used = token.last_used_at.map_or(NEVER, |at| at.0);
        let digest = token.digest;
        let user = User { token, role, used_at: AtomicI64::new(used), stored_at: AtomicI64::new(used) };
        let is_revoked = user.token.revoked_at.is_some();
        self.write().by_digest.insert(digest, Arc::new(user));
        if is_revoked {
            self.revoked.send_replace(());
        }
        Ok(())
    }

    /// Returns the holder of a valid token with this digest, and records the use.
    #[must_use]
    pub fn holder(&self, digest: &Digest, now: Millis) -> Option<Arc<User>> {
        let known = self.read();
        let user = known.by_digest.get(digest)?;
        let is_valid = known.is_valid(user, now);
        if is_valid {
            user.used_at.store(now.0, Ordering::Relaxed);
        }
        is_valid.then(|| user.clone())
    }

    /// Reports whether a token with this digest is valid. It does not count as a use.
    #[must_use]
    pub fn is_valid(&self, digest: &Digest, now: Millis) -> bool {
        let known = self.read();
        known.by_digest.get(digest).is_some_and(|user| known.is_valid(user, now))
    }

    #[must_use]
    pub fn ends_at(&self, digest: &Digest) -> Option<Millis> {
        self.read().by_digest.get(digest)?.token.expires_at
    }

    /// Returns the digest of the token that a session from a link of this token ends with.
    #[must_use]
    pub fn issuer(&self, digest: &Digest) -> Digest {
        let known = self.read();
        known.by_digest.get(digest).and_then(|user| user.token.issuer).unwrap_or(*digest)
    }

    /// Returns a receiver that changes when any token is revoked.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<()> {
        self.revoked.subscribe()
    }

    #[must_use]
    pub fn has(&self, tenant: &Tenant) -> bool {
        self.read().tenants.contains_key(tenant)
    }

    #[must_use]
    pub fn tenant(&self, tenant: &Tenant) -> Option<StoredTenant> {
        self.read().tenants.get(tenant).cloned()
    }

    /// Returns all tenants, the oldest first.
    #[must_use]
    pub fn tenants(&self) -> Vec<StoredTenant> {
        let mut tenants: Vec<_> = self.read().tenants.values().cloned().collect();
        tenants.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        tenants
    }

    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.read().by_digest.is_empty()
    }

    /// Returns the tokens of a tenant that are not revoked, the oldest first.
    #[must_use]
    pub fn users(&self, tenant: &Tenant) -> Vec<Arc<User>> {
        let known = self.read();
        let of_tenant = |user: &&Arc<User>| user.token.tenant == *tenant && user.token.revoked_at.is_none();
        let mut users: Vec<_> = known.by_digest.values().filter(of_tenant).cloned().collect();
        users.sort_by(|a, b| (a.token.created_at, &a.token.id).cmp(&(b.token.created_at, &b.token.id)));
        users
    }

    #[must_use]
    pub fn user(&self, tenant: &Tenant, id: &str) -> Option<Arc<User>> {
        self.users(tenant).into_iter().find(|user| user.token.id == id)
    }

    /// Returns the person behind the id of a caller. Several tokens, or a token and a JWT, may be of one person; the
    /// separation of duties counts persons.
    #[must_use]
    pub fn person(&self, id: &str) -> String {
        let known = self.read();
        let token = known.by_digest.values().find(|user| user.token.id == id);
        token.and_then(|user| user.token.person.clone()).unwrap_or_else(|| id.to_owned())
    }

    /// Returns the number of valid tokens of a tenant, without sessions of the web page.
    #[must_use]
    pub fn count_tokens(&self, tenant: &Tenant, now: Millis) -> usize {
        let users = self.users(tenant);
        users.iter().filter(|user| !user.is_session() && user.is_valid(now)).count()
    }

    /// Returns the sessions that a user began in a tenant, the oldest first.
    #[must_use]
    pub fn sessions(&self, tenant: &Tenant, by: &str) -> Vec<Arc<User>> {
        let is_own = |user: &Arc<User>| user.is_session() && user.token.created_by == by;
        self.users(tenant).into_iter().filter(is_own).collect()
    }

    /// Returns the sessions of all tenants that end with a token.
    #[must_use]
    pub fn sessions_from(&self, issuer: &Digest) -> Vec<Arc<User>> {
        let known = self.read();
        known.by_digest.values().filter(|user| user.token.issuer == Some(*issuer)).cloned().collect()
    }

    /// Returns sessions that are no longer valid, up to a maximum.
    #[must_use]
    pub fn ended_sessions(&self, now: Millis, max: usize) -> Vec<Arc<User>> {
        let known = self.read();
        let ended = known.by_digest.values().filter(|user| user.is_session() && !known.is_valid(user, now));
        ended.take(max).cloned().collect()
    }

    /// Returns uses of tokens that are not on disk yet, and counts them as stored.
    pub fn take_unstored_uses(&self) -> Vec<(String, Millis)> {
        let known = self.read();
        let unstored = known.by_digest.values().filter_map(|user| {
            let used = user.used_at.load(Ordering::Relaxed);
            let kept = user.stored_at.swap(used, Ordering::Relaxed);
            (used != kept).then(|| (user.token.id.clone(), Millis(used)))
        });
        unstored.collect()
    }

    /// Returns the rate limit of the tenant; None: no limit.
    #[must_use]
    pub fn rate(&self, tenant: &Tenant, settings: &Settings) -> Option<Rate> {
        let limits = self.limits(tenant);
        let burst = limits.rate_burst.or(settings.rate_burst).filter(|burst| *burst > 0);
        match limits.rate_limit.or(settings.rate_limit) {
            Some(0) => None,
            Some(per_second) => Some(Rate::new(per_second, burst)),
            // A default must not lock out the operators of the server.
            None if *tenant == Tenant::default() => None,
            None => Some(Rate { burst: burst.unwrap_or(TENANT_RATE.burst), ..TENANT_RATE }),
        }
    }

    /// Returns the rate limit of each hook of the tenant for requests without a token; None: no limit.
    #[must_use]
    pub fn hook_rate(&self, tenant: &Tenant, settings: &Settings) -> Option<Rate> {
        let limit = self.limits(tenant).hook_rate_limit.or(settings.hook_rate_limit)?;
        (limit > 0).then(|| Rate::new(limit, None))
    }

    /// Returns the maximum number of open streams of the tenant; None: no limit.
    #[must_use]
    pub fn streams(&self, tenant: &Tenant, settings: &Settings) -> Option<usize> {
        let limit = self.limits(tenant).streams.or(settings.tenant_streams)?;
        Some(limit as usize).filter(|limit| *limit > 0)
    }

    fn limits(&self, tenant: &Tenant) -> TenantLimits {
        self.read().tenants.get(tenant).map(|tenant| tenant.limits).unwrap_or_default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Reports whether a token is valid, and so is the one that it ends with.
    fn is_valid(&self, user: &User, now: Millis) -> bool {
        let has_issuer = |issuer| self.by_digest.get(issuer).is_some_and(|issuer| issuer.is_valid(now));
        user.is_valid(now) && user.token.issuer.as_ref().is_none_or(has_issuer)
    }
}

impl User {
    /// Reports whether a sign-in link created the token.
    pub(crate) fn is_session(&self) -> bool {
        self.token.id.starts_with(SESSION_PREFIX)
    }

    /// Returns the entry that deletes the token.
    pub(crate) fn deletion(&self) -> Entry {
        Entry::TokenDeleted { tenant: self.token.tenant.clone(), id: self.token.id.clone() }
    }

    /// Returns the user that acts. A session is the same person as the token that requested its link: with two
    /// identities, a person could evade the separation of duties.
    pub(crate) fn id(&self) -> &str {
        if self.is_session() { &self.token.created_by } else { &self.token.id }
    }

    /// Reports whether the token itself is valid; that of a session depends on another one, too.
    fn is_valid(&self, now: Millis) -> bool {
        self.token.revoked_at.is_none() && self.token.expires_at.is_none_or(|end| now < end)
    }

    /// Returns the time of the last use, even if it is not on disk yet.
    #[must_use]
    pub fn last_used_at(&self) -> Option<Millis> {
        let used = self.used_at.load(Ordering::Relaxed);
        (used != NEVER).then_some(Millis(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn settings(flags: &[(&'static str, &str)]) -> Settings {
        let flags: BTreeMap<_, _> = flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        Settings::load(&flags, |_| None).unwrap()
    }

    fn stored(id: &str, digest: u8, issuer: Option<u8>, expires_at: Option<i64>) -> StoredToken {
        let created_at = Millis(i64::from(digest));
        StoredToken {
            issuer: issuer.map(|issuer| [issuer; 32]),
            created_by: "user_1".to_owned(),
            expires_at: expires_at.map(Millis),
            ..StoredToken::new(id.to_owned(), [digest; 32], Tenant::default(), "viewer", created_at)
        }
    }

    #[test]
    fn sessions_depend_on_their_issuer_and_count_as_no_tokens() {
        let directory = Directory::default();
        for token in [
            stored("user_1", 1, None, None),
            stored("user_2", 2, None, Some(50)),
            stored("sess_1", 3, Some(1), Some(90)),
            stored("sess_2", 4, Some(2), Some(90)),
            stored("sess_3", 5, Some(9), Some(90)),
            stored("sess_4", 6, None, Some(20)),
        ] {
            directory.put_token(token).unwrap();
        }
        let valid = |at: i64| {
            (1..7).filter(|digest| directory.is_valid(&[*digest; 32], Millis(at))).collect::<Vec<u8>>()
        };
        assert_eq!(valid(10), [1, 2, 3, 4, 6], "the issuer of the fifth is unknown");
        assert_eq!(valid(60), [1, 3]);
        assert_eq!(valid(95), [1]);
        assert_eq!([10, 60].map(|at| directory.count_tokens(&Tenant::default(), Millis(at))), [2, 1]);
        assert_eq!(directory.issuer(&[3; 32]), [1; 32], "of a link that a session asks for");
        for user in directory.ended_sessions(Millis(60), 9) {
            directory.remove_token(&user.token.digest);
        }
        let left: Vec<_> =
            directory.users(&Tenant::default()).iter().map(|user| user.token.id.clone()).collect();
        assert_eq!(left, ["user_1", "user_2", "sess_1"], "tokens stay, also those that have expired");
    }

    #[test]
    fn default_limits_apply_to_all_tenants_but_the_operators() {
        let (directory, own, other) = (Directory::default(), Tenant::default(), Tenant::new("tnt_other"));
        let unset = settings(&[]);
        assert_eq!(directory.rate(&own, &unset), None);
        assert_eq!(directory.rate(&other, &unset), Some(TENANT_RATE));
        assert_eq!(directory.streams(&other, &unset), Some(2_000));
        assert_eq!(directory.hook_rate(&own, &unset), Some(Rate::new(100, None)));
        let none = settings(&[("rate-limit", "0"), ("tenant-streams", "0"), ("hook-rate-limit", "0")]);
        assert_eq!((directory.rate(&other, &none), directory.hook_rate(&other, &none)), (None, None));
        assert_eq!(directory.streams(&other, &none), None);
        let set = settings(&[("rate-limit", "5")]);
        assert_eq!(directory.rate(&own, &set), Some(Rate::new(5, None)));
    }
}
