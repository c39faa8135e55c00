//! The table of all settings of the server. Flags, environment variables, the file and docs/settings.md derive from it.

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Path,
    /// `127.0.0.1:7070`.
    Address,
    /// A whole number.
    Count,
    /// A number with `KiB`, `MiB` or `GiB`, or bytes.
    Bytes,
    /// A number with `ms`, `s`, `m`, `h` or `d`.
    Duration,
    /// `true` or `false`; as a flag it needs no value.
    Switch,
    /// A string that is never a flag: other users can see the arguments of a process.
    Secret,
}

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name of the flag and in the file; the environment variable is `WINDLASS_` and the name in upper case.
    pub name: &'static str,
    pub kind: Kind,
    /// The default value; empty: none.
    pub default: &'static str,
    pub what: &'static str,
}

impl Setting {
    /// Returns the name of its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("WINDLASS_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.kind != Kind::Secret
    }
}

const fn setting(name: &'static str, kind: Kind, default: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, default, what }
}

pub const DATA: &str = "data";
pub const CONFIG: &str = "config";

pub const SETTINGS: &[Setting] = &[
    setting(DATA, Kind::Path, ".windlass", "The data folder"),
    setting(
        CONFIG,
        Kind::Path,
        "",
        "A TOML file of settings; by default windlass.toml in the data folder, if it exists",
    ),
    setting(
        "listen",
        Kind::Address,
        "127.0.0.1:7070",
        "The address to listen on; port 0 selects a free port",
    ),
    setting(
        "new-owner-token",
        Kind::Switch,
        "false",
        "Create another owner's token if its file is missing in the data folder",
    ),
    setting("tls-cert", Kind::Path, "", "The certificate chain for HTTPS, PEM"),
    setting("tls-key", Kind::Path, "", "The private key of the certificate, PEM"),
    setting(
        "allow-public-http",
        Kind::Switch,
        "false",
        "Listen on a public address without TLS, because a proxy in front adds it",
    ),
    setting(
        "public-url",
        Kind::Text,
        "",
        "The address that clients use, for links in responses: https://windlass.example.com",
    ),
    setting(
        "trust-proxy",
        Kind::Text,
        "",
        "Addresses or ranges of proxies whose X-Forwarded-For, -Host and -Proto headers are used: 10.0.0.7,fd00::/8",
    ),
    setting("slots", Kind::Count, "", "Maximum number of steps that run at a time; four per core by default"),
    setting(
        "tenant-slots",
        Kind::Count,
        "",
        "Maximum number of steps of one tenant that run at a time; with several tenants, three quarters of the slots by default; 0: no limit. A tenant's own limit overrides it",
    ),
    setting(
        "database-bytes",
        Kind::Bytes,
        "256MiB",
        "Maximum size of one SQLite database of a step, without its journal; 0: no limit",
    ),
    setting(
        "tenant-database-bytes",
        Kind::Bytes,
        "1GiB",
        "Maximum size of all SQLite databases of one tenant, with their journals; 0: no limit",
    ),
    setting(
        "lease-ttl-seconds",
        Kind::Count,
        "30",
        "Time after which the work of a silent worker counts as lost, in seconds",
    ),
    setting(
        "routing-timeout-seconds",
        Kind::Count,
        "600",
        "Time in which the sandbox or route group of a plan's step has to become ready, in seconds; the step fails after it. Executions that have begun keep the time that they began with",
    ),
    setting(
        "misfire-grace",
        Kind::Duration,
        "10s",
        "How late an occurrence of a schedule may be before the misfire policy `skip` skips it",
    ),
    setting("readers", Kind::Count, "4", "Number of threads that read the store for requests"),
    setting("body-limit", Kind::Bytes, "4MiB", "Maximum size of the body of a request"),
    setting(
        "tenant-answers",
        Kind::Bytes,
        "64MiB",
        "Maximum bytes of responses and streams that wait in memory for clients of one tenant; beyond it large responses wait, then are refused with 429; 0: no limit",
    ),
    setting("header-timeout", Kind::Duration, "10s", "Maximum time for the head of a request, including TLS"),
    setting("request-timeout", Kind::Duration, "30s", "Maximum time for the body of a request"),
    setting(
        "idle-timeout",
        Kind::Duration,
        "75s",
        "Maximum time between two requests of a connection, and for the rest of a response",
    ),
    setting(
        "write-timeout",
        Kind::Duration,
        "30s",
        "Maximum time in which a client reads nothing of a response or a stream, before its connection is closed",
    ),
    setting(
        "max-connections",
        Kind::Count,
        "",
        "Maximum number of open connections, including WebSockets; further ones wait in the system's queue. By default 10000, or fewer if the limit on open files requires it",
    ),
    setting(
        "max-connections-per-address",
        Kind::Count,
        "2000",
        "Maximum number of open connections of one client address (an IPv6 /64), at most half of all; further ones are closed. Addresses in trust-proxy have no limit",
    ),
    setting(
        "max-streams",
        Kind::Count,
        "10000",
        "Maximum number of open WebSockets and event streams; further ones are refused with 503",
    ),
    setting(
        "tenant-streams",
        Kind::Count,
        "2000",
        "Maximum number of open WebSockets and event streams of one tenant; 0: no limit. A tenant's own limit overrides it",
    ),
    setting("stop-timeout", Kind::Duration, "10s", "Maximum time for open requests when the server stops"),
    setting(
        "stall-timeout",
        Kind::Duration,
        "60s",
        "Time after which the process ends itself if an essential thread does not respond; 0s: never",
    ),
    setting(
        "rate-limit",
        Kind::Count,
        "",
        "Maximum requests per second of one tenant; 0: no limit. A tenant's own limit overrides it. By default 1000, and no limit for the tenant `default`",
    ),
    setting(
        "rate-burst",
        Kind::Count,
        "0",
        "Maximum number of requests of one tenant in a burst above its rate; 0: equal to its rate",
    ),
    setting(
        "hook-rate-limit",
        Kind::Count,
        "100",
        "Maximum requests per second to one hook without a token; 0: no limit. A tenant's own limit overrides it",
    ),
    setting(
        "anonymous-rate-limit",
        Kind::Count,
        "100",
        "Maximum requests per second of one client address (an IPv6 /64) without a valid token; 0: no limit",
    ),
    setting(
        "open-executions",
        Kind::Count,
        "10000",
        "Maximum number of executions of one tenant that have not ended, including sub-workflows; 0: no limit. A tenant's own limit overrides it",
    ),
    setting(
        "tenant-storage",
        Kind::Bytes,
        "10GiB",
        "Maximum bytes that one tenant other than `default` stores; 0: no limit. A tenant's own limit overrides it",
    ),
    setting(
        "disk-reserve",
        Kind::Bytes,
        "512MiB",
        "Bytes of the disk that are kept free; with less, no execution is started and nothing new is stored; 0: none",
    ),
    setting(
        "inline-limit",
        Kind::Bytes,
        "64KiB",
        "Length of a value's JSON above which it is an artifact and not part of the journal, from 1KiB to 1MiB; all outputs of a step of a plan have half of it together. A definition's own limit overrides it",
    ),
    setting(
        "artifacts",
        Kind::Text,
        "",
        "Copy artifacts to a bucket of S3 or of a server that speaks its protocol: s3://BUCKET/PREFIX. The endpoint, the region and the credentials are read from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. By default artifacts are in the data folder only",
    ),
    setting(
        "artifact-attempts",
        Kind::Count,
        "15",
        "Number of attempts to upload an artifact after which the upload counts as failed, and the execution of a plan that waits for it fails",
    ),
    setting(
        "artifact-retry",
        Kind::Duration,
        "1s",
        "Time between the first two attempts to upload an artifact; it doubles with every further one, up to a minute",
    ),
    setting(
        "artifact-cache",
        Kind::Bytes,
        "0",
        "Bytes of uploaded artifacts that stay in the data folder, the newest first; others are read from the bucket. 0: all stay",
    ),
    setting("keep", Kind::Duration, "30d", "Time after which ended executions are deleted, or `forever`"),
    setting(
        "egress-allow",
        Kind::Text,
        "",
        "Ranges of private addresses that http tools and webhooks may reach: 10.0.0.0/8,fd00::/8",
    ),
    setting(
        "env-secrets",
        Kind::Text,
        "",
        "Environment variables of the server that definitions of the tenant `default` may read as secrets: SMTP_PASSWORD,APP_*",
    ),
    setting(
        "adapters",
        Kind::Path,
        "",
        "A YAML or JSON file that binds operations and kinds of tools that are not built in",
    ),
    setting("jwt-secret", Kind::Secret, "", "Accept JWTs signed with this secret (HS256); at least 32 bytes"),
    setting("jwt-public-key", Kind::Path, "", "Accept JWTs signed with this key (RS256 or EdDSA), PEM"),
    setting(
        "jwt-jwks",
        Kind::Text,
        "",
        "Accept JWTs signed with the keys of this JWKS, a file or an https URL",
    ),
    setting("jwt-issuer", Kind::Text, "", "The required issuer (iss) of JWTs"),
    setting("jwt-audience", Kind::Text, "", "The required audience (aud) of JWTs"),
    setting(
        "log",
        Kind::Text,
        "info",
        "Level of log lines: error, warn, info, debug, or per module as in windlass_server=debug",
    ),
    setting(
        "otlp-endpoint",
        Kind::Text,
        "",
        "Send executions as OpenTelemetry traces to this collector (OTLP over HTTP): http://localhost:4318",
    ),
    setting("log-format", Kind::Text, "text", "Format of log lines: text or json"),
];
