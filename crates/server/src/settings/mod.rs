//! The server's settings. Flags override the environment, which overrides the file, which overrides defaults.

mod bucket;
mod parse;
mod table;

pub use bucket::{BucketSettings, CREDENTIALS};
pub use table::{CONFIG, DATA, Kind, SETTINGS, Setting};

use crate::adapters::LoadedAdapters;
use crate::host::Shares;
use ipnet::IpNet;
use parse::GivenSettings;
pub use parse::{Retention, duration, retention};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_engine::Share;
use windlass_secrets::Zeroizing;
use windlass_store::UploadPolicy;
use windlass_worker::egress::Egress;
use windlass_worker::sandbox::DatabaseQuota;

/// Name of the file in the data folder that is read by default.
const FILE: &str = "windlass.toml";

#[derive(Debug, Clone)]
pub struct Settings {
    pub data: PathBuf,
    pub listen: Vec<SocketAddr>,
    pub new_owner_token: bool,
    pub tls: Option<Tls>,
    pub allow_public_http: bool,
    pub public_url: Option<String>,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trust_proxy: Vec<IpNet>,
    pub slots: Option<u32>,
    pub tenant_slots: Share,
    pub database_quota: DatabaseQuota,
    pub lease_ttl: Duration,
    pub routing_timeout: Duration,
    pub misfire_grace: Duration,
    pub readers: usize,
    pub body_limit: usize,
    /// Bytes; 0: no limit.
    pub tenant_answers: usize,
    pub header_timeout: Duration,
    pub request_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    /// None: as many as the limit on open files permits.
    pub max_connections: Option<u32>,
    pub max_connections_per_address: usize,
    pub max_streams: usize,
    /// None: no limit.
    pub tenant_streams: Option<u32>,
    pub stop_timeout: Duration,
    /// None: a stalled thread never ends the process.
    pub stall_timeout: Option<Duration>,
    /// None: not set; 0: no limit.
    pub rate_limit: Option<u32>,
    pub rate_burst: Option<u32>,
    /// None: no limit.
    pub hook_rate_limit: Option<u32>,
    /// None: no limit.
    pub anonymous_rate_limit: Option<u32>,
    pub open_executions: Option<u32>,
    /// Bytes; 0: no limit.
    pub tenant_storage: u64,
    pub disk_reserve: u64,
    /// Bucket to which artifacts are copied; None: they are in the data folder only.
    pub bucket: Option<BucketSettings>,
    /// Length of a value's JSON above which it is stored as an artifact.
    pub inline_limit: usize,
    pub uploads: UploadPolicy,
    /// Bytes of artifacts with a copy that stay in the data folder; None: all of them.
    pub artifact_cache: Option<u64>,
    /// None: executions are never deleted.
    pub keep: Option<Duration>,
    pub egress: Egress,
    /// Names of variables that definitions may read, or prefixes with a star.
    pub env_secrets: Vec<String>,
    pub jwt: JwtSettings,
    /// URL of the collector of traces.
    pub otlp_endpoint: Option<String>,
    /// Bindings of operations and kinds of tools.
    pub adapters: LoadedAdapters,
    pub log: String,
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Default)]
pub struct JwtSettings {
    pub secret: Option<Zeroizing<String>>,
    pub public_key: Option<PathBuf>,
    pub jwks: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// A setting that is not valid: its name, where it was set, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl Settings {
    /// Merges the sources. `variable` reads the environment; `flags` has the names of settings as keys.
    pub fn load(
        flags: &BTreeMap<&'static str, String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, BadSetting> {
        let mut given = defaults();
        let mut above = GivenSettings::default();
        above.apply_variables(&variable);
        above.apply_flags(flags);
        if let Some(file) = file(&above, &given)? {
            given.apply_file(&file)?;
        }
        given.override_with(above);
        let bucket = given.bucket("artifacts", &variable)?;
        Settings::read(&given, bucket)
    }

    /// Returns the variables of credentials that the settings use. Steps must not inherit them.
    pub fn secret_variables(
        flags: &BTreeMap<&'static str, String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> &'static [&'static str] {
        let mut given = GivenSettings::default();
        let mut above = GivenSettings::default();
        above.apply_variables(&variable);
        above.apply_flags(flags);
        // A file that cannot be read is reported when the settings are loaded.
        if let Ok(Some(file)) = file(&above, &defaults()) {
            let _ = given.apply_file(&file);
        }
        given.override_with(above);
        if given.text("artifacts").is_some() { &CREDENTIALS } else { &[] }
    }

    fn read(given: &GivenSettings, bucket: Option<BucketSettings>) -> Result<Settings, BadSetting> {
        let tls = match (given.path("tls-cert"), given.path("tls-key")) {
            (Some(cert), Some(key)) => Some(Tls { cert, key }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(BadSetting("tls-cert is set and tls-key is not; TLS needs both".into()));
            }
            (None, Some(_)) => {
                return Err(BadSetting("tls-key is set and tls-cert is not; TLS needs both".into()));
            }
        };
        let settings = Settings {
            data: given.path(DATA).unwrap_or_default(),
            listen: given.addresses("listen")?,
            new_owner_token: given.switch("new-owner-token")?,
            tls,
            allow_public_http: given.switch("allow-public-http")?,
            public_url: given.url("public-url")?,
            trust_proxy: given.ranges("trust-proxy")?,
            slots: given.count("slots")?,
            tenant_slots: given.share("tenant-slots")?,
            database_quota: DatabaseQuota {
                each: given.bytes_or_none("database-bytes")?,
                tenant: given.bytes_or_none("tenant-database-bytes")?,
            },
            lease_ttl: Duration::from_secs(given.size("lease-ttl-seconds")? as u64),
            routing_timeout: Duration::from_secs(given.size("routing-timeout-seconds")? as u64),
            misfire_grace: given.duration("misfire-grace")?,
            readers: given.size("readers")?,
            body_limit: given.bytes("body-limit")?,
            tenant_answers: given.bytes("tenant-answers")?,
            header_timeout: given.duration("header-timeout")?,
            request_timeout: given.duration("request-timeout")?,
            idle_timeout: given.duration("idle-timeout")?,
            write_timeout: given.duration("write-timeout")?,
            max_connections: given.count("max-connections")?,
            max_connections_per_address: given.size("max-connections-per-address")?,
            max_streams: given.size("max-streams")?,
            tenant_streams: given.count("tenant-streams")?,
            stop_timeout: given.duration("stop-timeout")?,
            stall_timeout: Some(given.duration("stall-timeout")?).filter(|time| !time.is_zero()),
            rate_limit: given.number("rate-limit")?,
            rate_burst: given.count("rate-burst")?,
            hook_rate_limit: given.count("hook-rate-limit")?,
            anonymous_rate_limit: given.count("anonymous-rate-limit")?,
            open_executions: given.count("open-executions")?,
            tenant_storage: given.bytes("tenant-storage")? as u64,
            disk_reserve: given.bytes("disk-reserve")? as u64,
            bucket,
            inline_limit: given.inline_limit("inline-limit")?,
            uploads: given.uploads()?,
            artifact_cache: given.bytes_or_none("artifact-cache")?,
            keep: given.retention("keep")?,
            egress: given.egress("egress-allow")?,
            env_secrets: given.names("env-secrets")?,
            jwt: JwtSettings {
                secret: given.text("jwt-secret").map(Zeroizing::new),
                public_key: given.path("jwt-public-key"),
                jwks: given.text("jwt-jwks"),
                issuer: given.text("jwt-issuer"),
                audience: given.text("jwt-audience"),
            },
            otlp_endpoint: given.url("otlp-endpoint")?,
            adapters: given.adapters("adapters")?,
            log: given.text("log").unwrap_or_default(),
            log_format: given.log_format("log-format")?,
        };
        settings.is_private_enough()?;
        Ok(settings)
    }

    /// Returns the limits of tenants that have none of their own.
    #[must_use]
    pub fn shares(&self) -> Shares {
        Shares { slots: self.tenant_slots, open_executions: self.open_executions }
    }

    /// Refuses to send tokens in clear text over a network, unless the settings allow it.
    fn is_private_enough(&self) -> Result<(), BadSetting> {
        let public = self.listen.iter().find(|address| !address.ip().is_loopback());
        match public {
            Some(address) if self.tls.is_none() && !self.allow_public_http => Err(BadSetting(format!(
                "{address} is reachable from other machines, and without TLS tokens are sent in clear text\n  \
                 hint: set --tls-cert and --tls-key, or --allow-public-http behind a proxy that adds TLS, or listen on 127.0.0.1"
            ))),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for JwtSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let secret = self.secret.as_ref().map(|_| "…");
        f.debug_struct("JwtSettings")
            .field("secret", &secret)
            .field("public_key", &self.public_key)
            .field("jwks", &self.jwks)
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish()
    }
}

fn defaults() -> GivenSettings {
    let mut given = GivenSettings::default();
    given.apply("its default", |setting| (!setting.default.is_empty()).then(|| setting.default.to_owned()));
    given
}

/// Returns the named file, which must exist, or the one in the data folder if it exists.
fn file(above: &GivenSettings, defaults: &GivenSettings) -> Result<Option<PathBuf>, BadSetting> {
    if let Some(named) = above.path(CONFIG) {
        return match named.is_file() {
            true => Ok(Some(named)),
            false => Err(BadSetting(format!("config: the file {} does not exist", named.display()))),
        };
    }
    let data = above.path(DATA).or_else(|| defaults.path(DATA)).unwrap_or_default();
    Ok(Some(Path::new(&data).join(FILE)).filter(|file| file.is_file()))
}

#[cfg(test)]
mod tests;
