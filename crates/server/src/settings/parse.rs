//! Parsing of settings. Each value carries its origin, which error messages name.

use super::bucket::BucketSettings;
use super::{BadSetting, CONFIG, DATA, Kind, LogFormat, SETTINGS, Setting};
use crate::adapters::{LoadedAdapters, load_adapters};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use toml::{Table, Value};
use windlass_engine::Share;
use windlass_store::UploadPolicy;
use windlass_worker::egress::Egress;

/// Values of the setting `inline-limit`.
const INLINE_LIMITS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 20;
/// Maximum delay between attempts to upload an artifact that something may wait for.
const UPLOAD_DELAY_MAX_MS: u64 = 60_000;
/// Delay between later attempts, which nothing waits for.
const UPLOAD_FAILED_DELAY_MS: u64 = 3_600_000;

/// Variables of other programs that mean a setting. The variable of the setting itself has precedence.
const ALIASES: [(&str, &str); 1] = [("WAKEPLANE_LEASE_TTL_SECONDS", "lease-ttl-seconds")];

/// Values by the name of the setting: the text and its origin.
#[derive(Debug, Default)]
pub(super) struct GivenSettings(BTreeMap<&'static str, (String, String)>);

impl GivenSettings {
    pub(crate) fn apply(&mut self, origin: &str, text: impl Fn(&Setting) -> Option<String>) {
        for setting in SETTINGS {
            if let Some(text) = text(setting) {
                self.0.insert(setting.name, (text, origin.to_owned()));
            }
        }
    }

    pub(crate) fn apply_variables(&mut self, variable: &impl Fn(&str) -> Option<String>) {
        for (variable_name, name) in ALIASES {
            if let Some(text) = variable(variable_name).filter(|text| !text.is_empty()) {
                self.0.insert(name, (text, variable_name.to_owned()));
            }
        }
        for setting in SETTINGS {
            let name = setting.variable();
            // An empty variable counts as not set.
            if let Some(text) = variable(&name).filter(|text| !text.is_empty()) {
                self.0.insert(setting.name, (text, name));
            }
        }
    }

    pub(crate) fn apply_flags(&mut self, flags: &BTreeMap<&'static str, String>) {
        for (name, text) in flags {
            self.0.insert(name, (text.clone(), format!("--{name}")));
        }
    }

    /// Applies a TOML file. Every key must be the name of a setting.
    pub(crate) fn apply_file(&mut self, file: &Path) -> Result<(), BadSetting> {
        let shown = file.display();
        let bad = |what: String| BadSetting(format!("{shown}: {what}"));
        let text = std::fs::read_to_string(file).map_err(|error| bad(format!("cannot be read: {error}")))?;
        let table: Table = text.parse().map_err(|error| bad(format!("{error}")))?;
        for (key, value) in table {
            let known = SETTINGS
                .iter()
                .find(|setting| setting.name == key && ![DATA, CONFIG].contains(&setting.name));
            let setting = known.ok_or_else(|| {
                bad(format!("unknown setting `{key}`; docs/settings.md lists all settings"))
            })?;
            let text = text_of(value).ok_or_else(|| {
                bad(format!("`{key}` must be a string, an integer, a boolean or an array of strings"))
            })?;
            self.0.insert(setting.name, (text, format!("`{key}` in {shown}")));
        }
        Ok(())
    }

    pub(crate) fn override_with(&mut self, above: GivenSettings) {
        self.0.extend(above.0);
    }

    pub(crate) fn text(&self, name: &'static str) -> Option<String> {
        debug_assert!(SETTINGS.iter().any(|setting| setting.name == name), "{name} is in the table");
        self.0.get(name).map(|(text, _)| text.clone()).filter(|text| !text.is_empty())
    }

    pub(crate) fn path(&self, name: &'static str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// Returns None for 0, as if the setting were not set.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u32>, BadSetting> {
        self.number(name).map(|count| count.filter(|count| *count > 0))
    }

    /// Returns None if the setting is not set, which differs from 0.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<u32>, BadSetting> {
        self.parsed::<u32>(name, "an integer")
    }

    /// Returns a fair share if the setting is not set, and no limit for 0.
    pub(crate) fn share(&self, name: &'static str) -> Result<Share, BadSetting> {
        Ok(match self.parsed::<u32>(name, "an integer")? {
            None => Share::Fair,
            Some(0) => Share::All,
            Some(count) => Share::AtMost(count as usize),
        })
    }

    pub(crate) fn size(&self, name: &'static str) -> Result<usize, BadSetting> {
        match self.count(name)? {
            Some(count) => Ok(count as usize),
            None => Err(self.bad(name, "an integer above 0")),
        }
    }

    pub(crate) fn switch(&self, name: &'static str) -> Result<bool, BadSetting> {
        self.parsed(name, "true or false").map(Option::unwrap_or_default)
    }

    pub(crate) fn bytes(&self, name: &'static str) -> Result<usize, BadSetting> {
        let expected = "a number of bytes as in 4MiB";
        let text = self.text(name).ok_or_else(|| self.bad(name, expected))?;
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
        scaled(&text, &units)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| self.bad(name, expected))
    }

    /// Returns None for 0, which means no limit.
    pub(crate) fn bytes_or_none(&self, name: &'static str) -> Result<Option<u64>, BadSetting> {
        Ok(Some(self.bytes(name)? as u64).filter(|bytes| *bytes > 0))
    }

    pub(crate) fn duration(&self, name: &'static str) -> Result<Duration, BadSetting> {
        let expected = "a time as in 500ms, 10s, 5m, 12h or 30d";
        let text = self.text(name).ok_or_else(|| self.bad(name, expected))?;
        duration(&text).map_err(|_| self.bad(name, expected))
    }

    /// Returns the time for which something is kept; None is without a limit.
    pub(crate) fn retention(&self, name: &'static str) -> Result<Option<Duration>, BadSetting> {
        let text = self.text(name).ok_or_else(|| self.bad(name, RETENTION_EXPECTED))?;
        retention(&text).map(Retention::limit).map_err(|_| self.bad(name, RETENTION_EXPECTED))
    }

    pub(crate) fn addresses(&self, name: &'static str) -> Result<Vec<SocketAddr>, BadSetting> {
        let expected = "an address and a port as in 127.0.0.1:7070";
        let text = self.text(name).ok_or_else(|| self.bad(name, expected))?;
        let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| self.bad(name, expected))?.collect();
        if found.is_empty() { Err(self.bad(name, expected)) } else { Ok(found) }
    }

    pub(crate) fn url(&self, name: &'static str) -> Result<Option<String>, BadSetting> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
        match is_url {
            true => Ok(Some(text.trim_end_matches('/').to_owned())),
            false => Err(self.bad(name, "a URL as in https://windlass.example.com")),
        }
    }

    pub(crate) fn egress(&self, name: &'static str) -> Result<Egress, BadSetting> {
        let list = self.text(name).unwrap_or_default();
        Egress::default()
            .allowing(&list)
            .map_err(|error| BadSetting(format!("{}: {error}", self.origin(name))))
    }

    /// Reads the place of artifacts, and its credentials from the environment.
    pub(crate) fn bucket(
        &self,
        name: &'static str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<BucketSettings>, BadSetting> {
        let place = self.text(name);
        place.map(|place| BucketSettings::read(&place, self.origin(name), variable)).transpose()
    }

    pub(crate) fn uploads(&self) -> Result<UploadPolicy, BadSetting> {
        let delay = self.duration("artifact-retry")?;
        let attempts_max = self.count("artifact-attempts")?;
        Ok(UploadPolicy {
            attempts_max: attempts_max.ok_or_else(|| self.bad("artifact-attempts", "an integer above 0"))?,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            delay_max_ms: UPLOAD_DELAY_MAX_MS,
            failed_delay_ms: UPLOAD_FAILED_DELAY_MS,
        })
    }

    /// Reads a length within what a journal row can hold and what a reference to an artifact takes.
    pub(crate) fn inline_limit(&self, name: &'static str) -> Result<usize, BadSetting> {
        let bytes = self.bytes(name)?;
        match INLINE_LIMITS.contains(&bytes) {
            true => Ok(bytes),
            false => Err(self.bad(name, "a size from 1KiB to 1MiB")),
        }
    }

    /// Reads the adapters file.
    pub(crate) fn adapters(&self, name: &'static str) -> Result<LoadedAdapters, BadSetting> {
        let Some(path) = self.path(name) else { return Ok(LoadedAdapters::default()) };
        load_adapters(&path).map_err(|error| BadSetting(format!("{}: {error}", self.origin(name))))
    }

    pub(crate) fn ranges(&self, name: &'static str) -> Result<Vec<IpNet>, BadSetting> {
        Ok(self.egress(name)?.allow)
    }

    /// Parses names of variables, separated by commas, each with an optional star at its end.
    pub(crate) fn names(&self, name: &'static str) -> Result<Vec<String>, BadSetting> {
        let list = self.text(name).unwrap_or_default();
        let names: Vec<String> =
            list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
        let is_name = |name: &String| {
            let bare = name.strip_suffix('*').unwrap_or(name);
            !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match names.iter().all(is_name) {
            true => Ok(names),
            false => Err(self.bad(name, "a list of variables as in SMTP_PASSWORD,APP_*")),
        }
    }

    pub(crate) fn log_format(&self, name: &'static str) -> Result<LogFormat, BadSetting> {
        match self.text(name).as_deref() {
            Some("text") => Ok(LogFormat::Text),
            Some("json") => Ok(LogFormat::Json),
            _ => Err(self.bad(name, "text or json")),
        }
    }

    fn parsed<T: FromStr>(&self, name: &'static str, expected: &str) -> Result<Option<T>, BadSetting> {
        self.text(name).map(|text| text.parse().map_err(|_| self.bad(name, expected))).transpose()
    }

    fn origin<'g>(&'g self, name: &'g str) -> &'g str {
        self.0.get(name).map_or(name, |(_, origin)| origin)
    }

    /// Describes a value that is not valid. The message has the value, unless it is a secret.
    fn bad(&self, name: &str, expected: &str) -> BadSetting {
        let is_secret = SETTINGS.iter().any(|setting| setting.name == name && setting.kind == Kind::Secret);
        let text = self.0.get(name).map_or("", |(text, _)| text.as_str());
        let shown = if is_secret { "…" } else { text };
        BadSetting(format!("{}: `{shown}` is not {expected}", self.origin(name)))
    }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is) => Some(is.to_string()),
        Value::Array(values) => {
            let texts: Option<Vec<String>> =
                values.into_iter().map(|value| value.as_str().map(str::to_owned)).collect();
            texts.map(|texts| texts.join(","))
        }
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// Parses a duration as in `500ms`, `10s`, `5m`, `12h` or `30d`.
pub fn duration(text: &str) -> Result<Duration, BadSetting> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let bad = || BadSetting(format!("`{text}` is not a time as in 500ms, 10s, 5m, 12h or 30d"));
    scaled(text, &units).map(Duration::from_millis).ok_or_else(bad)
}

const RETENTION_EXPECTED: &str = "a time as in 12h or 30d, or `forever`";

/// Time for which ended executions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    For(Duration),
    Forever,
}

impl Retention {
    #[must_use]
    pub fn limit(self) -> Option<Duration> {
        match self {
            Retention::For(time) => Some(time),
            Retention::Forever => None,
        }
    }
}

/// Parses a time as in `30d`, or `forever`. `0d` keeps nothing that has ended.
pub fn retention(text: &str) -> Result<Retention, BadSetting> {
    let bad = |_| BadSetting(format!("`{text}` is not {RETENTION_EXPECTED}"));
    if text == "forever" { Ok(Retention::Forever) } else { duration(text).map(Retention::For).map_err(bad) }
}

/// Parses an integer with one of the units.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}
