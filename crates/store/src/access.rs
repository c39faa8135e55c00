//! Tenants, tokens and the audit log of a server.

use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_kernel::Millis;

/// Reads tenants, tokens and the audit log.
pub trait Access: Reader {
    fn tenants(&mut self) -> StoreResult<Vec<StoredTenant>>;

    /// Returns the tokens of all tenants, including revoked ones.
    fn tokens(&mut self) -> StoreResult<Vec<StoredToken>>;

    /// Returns audit rows, the newest first.
    fn audit(&mut self, query: &AuditQuery) -> StoreResult<Vec<StoredAudit>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTenant {
    pub id: Tenant,
    pub name: String,
    pub limits: TenantLimits,
    /// Whether its definitions may run programs, as the user of the server.
    pub programs: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// Passes every limit of a tenant to a macro: its field, type, largest value and description. The stored form and the
/// API are made from this table.
#[macro_export]
macro_rules! each_tenant_limit {
    ($make:ident) => {
        $make! {
            rate_limit: u32, 1_000_000_000, "Maximum requests per second";
            rate_burst: u32, 1_000_000_000, "Maximum number of requests in a burst";
            open_executions: u32, 1_000_000_000, "Maximum number of executions that have not ended";
            slots: u32, 1_000_000_000, "Maximum number of worker slots in use";
            streams: u32, 1_000_000_000, "Maximum number of open WebSockets and event streams";
            hook_rate_limit: u32, 1_000_000_000, "Maximum requests per second to one hook without a token";
            // The largest integer that every JSON parser reads exactly.
            storage: u64, 9_007_199_254_740_991, "Maximum bytes of journals, logs, large values, definitions and memories";
        }
    };
}

macro_rules! tenant_limits {
    ($($field:ident: $number:ty, $max:tt, $about:literal;)*) => {
        /// Limits of a tenant. None: the server's setting applies, 0: no limit. A field that this program does not know
        /// is refused, because an unknown limit could not be enforced.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct TenantLimits {
            $(#[doc = $about] #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$number>,)*
        }
    };
}
each_tenant_limit!(tenant_limits);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// `user_` followed by 32 hexadecimal digits.
    pub id: String,
    pub tenant: Tenant,
    pub name: String,
    pub role: String,
    /// Roles that policies of definitions ask for.
    pub roles: Vec<String>,
    /// The only group that a worker with this token may claim for; None: any group of the tenant.
    pub group: Option<String>,
    /// The person who holds the token, if the person has another identity, too: the id of another token, `jwt:` and a
    /// subject, or the owner of the folder.
    pub person: Option<String>,
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// Digest of the token that this one ends with: a session of the web page ends with the token whose link began it.
    pub issuer: Option<[u8; 32]>,
    pub created_by: String,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    pub revoked_at: Option<Millis>,
    pub last_used_at: Option<Millis>,
}

impl StoredToken {
    /// Returns a token for a role in a tenant, without a restriction and without an end.
    #[must_use]
    pub fn new(id: String, digest: [u8; 32], tenant: Tenant, role: &str, created_at: Millis) -> StoredToken {
        StoredToken {
            id,
            tenant,
            name: String::new(),
            role: role.to_owned(),
            roles: Vec::new(),
            group: None,
            person: None,
            digest,
            issuer: None,
            created_by: String::new(),
            created_at,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }
}

/// The caller who requests a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// `user_…`, or the subject of a JWT.
    pub actor: String,
    pub role: String,
}

/// An action of a caller. It is written by the transaction that changes something: the change and its audit row exist
/// together or not at all. An action that changes nothing, such as a refused request, is written alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub tenant: Tenant,
    pub at: Millis,
    /// Actor: `user_…`, or the subject of a JWT.
    pub actor: String,
    pub role: String,
    /// Action: `workflow.create`, `token.revoke`, …
    pub action: String,
    /// Id of the changed resource.
    pub target: String,
    /// An object.
    pub details: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredAudit {
    /// Number of the row, which rises.
    pub seq: i64,
    pub audit: Audit,
    /// None: it was written without a key.
    pub seal: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct AuditQuery {
    pub tenant: Tenant,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    pub since: Option<Millis>,
    pub until: Option<Millis>,
    /// Only rows with a lower number.
    pub before: Option<i64>,
    pub limit: usize,
}
