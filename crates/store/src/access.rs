//! Tenants, tokens and the audit log of a server.

use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
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
    /// Its definitions may run programs, as the user of the server.
    pub programs: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// None: the server's own setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantLimits {
    /// Requests per second; 0 is no limit.
    pub rate_limit: Option<u32>,
    pub rate_burst: Option<u32>,
    /// 0 is no limit.
    pub open_executions: Option<u32>,
    /// Slots of workers at a time; 0 is no limit.
    pub slots: Option<u32>,
    /// WebSockets and streams of events at a time; 0 is no limit.
    pub streams: Option<u32>,
    /// Requests per second to one hook without a token; 0 is no limit.
    pub hook_rate_limit: Option<u32>,
    /// Bytes; 0 is no limit.
    pub storage: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// `user_` and 32 hexadecimal digits.
    pub id: String,
    pub tenant: Tenant,
    pub name: String,
    pub role: String,
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    pub created_by: String,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    pub revoked_at: Option<Millis>,
    pub last_used_at: Option<Millis>,
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
    /// Who: `user_…`, or the subject of a JWT.
    pub actor: String,
    pub role: String,
    /// What: `workflow.create`, `token.revoke`, …
    pub action: String,
    /// To what: its id.
    pub target: String,
    /// An object.
    pub details: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredAudit {
    /// Rises.
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
    /// Only rows before this number.
    pub before: Option<i64>,
    pub limit: usize,
}
