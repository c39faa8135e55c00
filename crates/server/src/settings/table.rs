//! Every setting of the server: one table. Flags, environment, the file and docs/settings.md follow it.

/// What a setting's text means.
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
    /// Never a flag: the arguments of a process can be seen by others.
    Secret,
}

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// As a flag and in the file; in the environment it is `WINDLASS_` and this in capitals.
    pub name: &'static str,
    pub kind: Kind,
    /// Empty: there is none.
    pub default: &'static str,
    pub what: &'static str,
}

impl Setting {
    /// Its name in the environment.
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
        "A TOML file of settings; without it, windlass.toml in the data folder if it is there",
    ),
    setting("listen", Kind::Address, "127.0.0.1:7070", "The address to listen on; port 0 takes a free one"),
    setting(
        "new-owner-token",
        Kind::Switch,
        "false",
        "Make another owner's token if its file is gone from the data folder",
    ),
    setting("tls-cert", Kind::Path, "", "The certificate chain for HTTPS, PEM"),
    setting("tls-key", Kind::Path, "", "The private key of the certificate, PEM"),
    setting(
        "allow-public-http",
        Kind::Switch,
        "false",
        "Listen on a public address without TLS, because something in front adds it",
    ),
    setting(
        "public-url",
        Kind::Text,
        "",
        "How clients reach the server, for links it gives: https://windlass.example.com",
    ),
    setting(
        "trust-proxy",
        Kind::Text,
        "",
        "Addresses or ranges of proxies whose X-Forwarded-For, -Host and -Proto are believed: 10.0.0.7,fd00::/8",
    ),
    setting("slots", Kind::Count, "", "Pieces of work at a time; four to a core if nothing is given"),
    setting(
        "tenant-slots",
        Kind::Count,
        "",
        "Pieces of work of one tenant at a time; all but a quarter of the slots if nothing is given and there are several tenants; 0: no limit. A tenant's own limit comes first",
    ),
    setting(
        "database-bytes",
        Kind::Bytes,
        "256MiB",
        "The largest SQLite database of a step, without its journal; 0: no limit",
    ),
    setting(
        "tenant-database-bytes",
        Kind::Bytes,
        "1GiB",
        "SQLite databases of one tenant's steps together, with their journals; 0: no limit",
    ),
    setting("readers", Kind::Count, "4", "Threads that read the store for requests"),
    setting("body-limit", Kind::Bytes, "4MiB", "The largest body of a request"),
    setting(
        "tenant-answers",
        Kind::Bytes,
        "64MiB",
        "Bytes of answers and streams that wait in memory for clients of one tenant; beyond it large answers wait, then get a 429; 0: no limit",
    ),
    setting("header-timeout", Kind::Duration, "10s", "How long the head of a request may take, TLS included"),
    setting("request-timeout", Kind::Duration, "30s", "How long the body of a request may take"),
    setting(
        "idle-timeout",
        Kind::Duration,
        "75s",
        "How long a connection may stay open between two requests, and take the rest of a response",
    ),
    setting(
        "write-timeout",
        Kind::Duration,
        "30s",
        "How long a client may take nothing of a response or a stream before its connection is closed",
    ),
    setting(
        "max-connections",
        Kind::Count,
        "",
        "Connections at a time, WebSockets included; others wait in the system's queue. If nothing is given, 10000, or as \
         many as the limit on open files allows beside the engine",
    ),
    setting(
        "max-connections-per-address",
        Kind::Count,
        "2000",
        "Connections at a time of one client address (of IPv6 a /64), half of all at most; more are closed at once. Those of trust-proxy have no limit",
    ),
    setting(
        "max-streams",
        Kind::Count,
        "10000",
        "WebSockets and streams of events at a time; others get a 503",
    ),
    setting(
        "tenant-streams",
        Kind::Count,
        "2000",
        "WebSockets and streams of events of one tenant at a time; 0: no limit. A tenant's own limit comes first",
    ),
    setting(
        "stop-timeout",
        Kind::Duration,
        "10s",
        "How long open requests may go on when the server is stopped",
    ),
    setting(
        "stall-timeout",
        Kind::Duration,
        "60s",
        "How long a thread that all work waits for may stand still until the process ends itself; 0s: for ever",
    ),
    setting(
        "rate-limit",
        Kind::Count,
        "",
        "Requests per second of one tenant; 0: no limit. A tenant's own limit comes first. If nothing is given, 1000 for \
         every tenant but `default`, which has no limit",
    ),
    setting(
        "rate-burst",
        Kind::Count,
        "0",
        "Requests at once of one tenant above its rate; 0: as many as its rate",
    ),
    setting(
        "hook-rate-limit",
        Kind::Count,
        "100",
        "Requests per second to one hook without a token; 0: no limit. A tenant's own limit comes first",
    ),
    setting(
        "anonymous-rate-limit",
        Kind::Count,
        "100",
        "Requests per second of one client address (of IPv6 a /64) without a good token; 0: no limit",
    ),
    setting(
        "open-executions",
        Kind::Count,
        "10000",
        "Executions of one tenant that have not ended, sub-workflows among them; 0: no limit. A tenant's own limit comes first",
    ),
    setting(
        "tenant-storage",
        Kind::Bytes,
        "10GiB",
        "Bytes that one tenant other than `default` may use; 0: no limit. A tenant's own limit comes first",
    ),
    setting(
        "disk-reserve",
        Kind::Bytes,
        "512MiB",
        "Bytes of the disk that are kept free: with less, nothing new is started or stored; 0: none",
    ),
    setting("keep", Kind::Duration, "30d", "How long executions are kept after they ended; 0d: for ever"),
    setting(
        "egress-allow",
        Kind::Text,
        "",
        "Ranges of addresses that http tools and webhooks may reach beside public ones: 10.0.0.0/8,fd00::/8",
    ),
    setting(
        "env-secrets",
        Kind::Text,
        "",
        "Variables of the server that definitions of the tenant `default` may read as secrets: SMTP_PASSWORD,APP_*",
    ),
    setting("jwt-secret", Kind::Secret, "", "Accept JWTs signed with this secret (HS256); at least 32 bytes"),
    setting("jwt-public-key", Kind::Path, "", "Accept JWTs signed with this key (RS256 or EdDSA), PEM"),
    setting(
        "jwt-jwks",
        Kind::Text,
        "",
        "Accept JWTs signed with the keys of this JWKS, a file or an https URL",
    ),
    setting("jwt-issuer", Kind::Text, "", "The issuer (iss) that JWTs must have"),
    setting("jwt-audience", Kind::Text, "", "The audience (aud) that JWTs must have"),
    setting(
        "log",
        Kind::Text,
        "info",
        "Which log lines are written: error, warn, info, debug, or per module as in windlass_server=debug",
    ),
    setting(
        "otlp-endpoint",
        Kind::Text,
        "",
        "Send executions as OpenTelemetry traces to this collector (OTLP over HTTP): http://localhost:4318",
    ),
    setting("log-format", Kind::Text, "text", "text or json"),
];
