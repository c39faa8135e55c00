//! Resources of the engine that a unit of work needs while it runs: secrets, rights, large values and memories.
//!
//! The engine serves them only to the session that holds the unit, for the tenant of its execution. A worker therefore
//! needs no key, no store and no configuration of tenants.

use crate::plan::RoutingTarget;
use crate::work::Unit;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use windlass_failure::{Failure, codes};
use zeroize::Zeroizing;

/// Request of a unit that a worker holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceCall {
    pub unit: Unit,
    pub ask: ResourceAsk,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceAsk {
    /// Returns the rights of the tenant as of now.
    GetRights,
    /// Returns the value of a secret of the tenant.
    OpenSecret { name: String },
    /// Stores a large value under the digest of its JSON. After the reply a crash does not lose it.
    PutArtifact { key: String, body: Body },
    /// Returns a large value that the tenant stored.
    GetArtifact { key: String },
    /// Returns the same as a file to read from.
    GetArtifactFile { key: String },
    /// Stores a value of the workflow beyond this execution; the value of an existing key is replaced.
    StoreMemory { key: String, value: Value },
    /// Returns the newest matching values of the workflow first.
    SearchMemory(MemorySearch),
    /// Returns the routing key of a registered sandbox or route group.
    FindRoutingKey { target: RoutingTarget },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceReply {
    Rights(Rights),
    Secret(SecretValue),
    /// Content of the artifact; without a body, the tenant has no such artifact, or it is damaged.
    Artifact(Option<Body>),
    Memories(Vec<Memory>),
    /// `None`: there is no such target, or it has no key.
    RoutingKey(Option<String>),
    /// The artifact or the memory is on disk.
    Stored,
    /// The resource is not available.
    Failed(Failure),
    /// The unit was given to another worker, was stopped or has ended.
    Stale,
}

impl ResourceReply {
    /// Returns the kind of the reply in words, without its content.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ResourceReply::Rights(_) => "rights",
            ResourceReply::Secret(_) => "a secret",
            ResourceReply::Artifact(_) => "an artifact",
            ResourceReply::Memories(_) => "memories",
            ResourceReply::RoutingKey(_) => "a routing key",
            ResourceReply::Stored => "the confirmation of a write",
            ResourceReply::Failed(_) => "a failure",
            ResourceReply::Stale => "the end of the unit",
        }
    }
}

/// Bytes of an artifact. A transport between processes sends them as a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    pub length: u64,
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// A file with the bytes, in place of `bytes`.
    #[serde(skip)]
    pub file: Option<BodyFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFile {
    /// The file belongs to the receiver, who moves or removes it.
    Moved(PathBuf),
    /// The file stays where it is and is not changed.
    Shared(PathBuf),
}

impl Body {
    #[must_use]
    pub fn of_file(length: u64, file: BodyFile) -> Body {
        Body { length, bytes: Vec::new(), file: Some(file) }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body { length: bytes.len() as u64, bytes, file: None }
    }
}

/// Rights of the definitions of a tenant on the machine of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Whether steps may start programs, which run as the user of the worker.
    pub programs: bool,
    /// Variables of the worker that steps may read as secrets.
    pub variables: Variables,
}

/// A set of environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variables {
    All,
    /// Names, and prefixes of names that end with a star.
    Listed(Vec<String>),
}

impl Variables {
    #[must_use]
    pub fn contain(&self, name: &str) -> bool {
        let matches = |listed: &String| match listed.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => listed == name,
        };
        match self {
            Variables::All => true,
            Variables::Listed(listed) => listed.iter().any(matches),
        }
    }
}

/// Rules of an engine that hold for all work of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerRules {
    pub egress: EgressRules,
    pub databases: DatabaseQuota,
    /// Time after which a lease that is not renewed is lost; None: [`crate::LEASE_TTL_MS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<u64>,
}

/// Addresses that requests of definitions may reach. The default allows no private ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressRules {
    /// Loopback and private ranges, all of them.
    pub allow_private: bool,
    /// Private ranges that are allowed, as in `10.0.0.0/8`.
    pub allow: Vec<String>,
}

/// Maximum size of SQLite databases in bytes, with their journals and logs. None: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DatabaseQuota {
    /// One database.
    pub each: Option<u64>,
    /// All databases of one tenant.
    pub tenant: Option<u64>,
}

/// Value of a secret: overwritten in memory when it is dropped, and never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(pub Zeroizing<String>);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecretValue, D::Error> {
        String::deserialize(deserializer).map(|value| SecretValue(Zeroizing::new(value)))
    }
}

/// Query for memories. A memory matches when it matches every given part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySearch {
    pub key: Option<String>,
    pub prefix: Option<String>,
    /// Each word is part of the key or of the value, in upper or lower case.
    pub words: Vec<String>,
    pub limit: usize,
}

/// Value that a workflow stored beyond its executions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub key: String,
    pub value: Value,
    /// Milliseconds since the Unix epoch.
    pub at: i64,
}

/// Reason why nothing more can be stored for a tenant, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRoom {
    /// The tenant has used up its quota.
    Quota(String),
    /// The disk has only its reserve left.
    Disk(String),
}

impl NoRoom {
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            NoRoom::Quota(message) | NoRoom::Disk(message) => message,
        }
    }

    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            NoRoom::Quota(message) => Failure::new(codes::QUOTA_EXCEEDED, message),
            NoRoom::Disk(message) => Failure::new(codes::DISK_FULL, message),
        }
    }
}
