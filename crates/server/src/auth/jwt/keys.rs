//! Keys that verify JWTs. Each key is for one algorithm. The algorithm in the header of a token is not used.

use anyhow::{Context, bail};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use windlass_secrets::Zeroizing;

/// Time after which a JWKS is read again, so that withdrawn keys are dropped.
const FRESH: Duration = Duration::from_secs(600);
/// Minimum time between two reads for unknown keys.
pub(super) const ASK_PAUSE: Duration = Duration::from_secs(10);
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a JWKS.
const JWKS_MAX: usize = 1 << 20;

pub(super) struct Keys {
    given: Vec<Key>,
    set: Option<Set>,
}

#[derive(Clone)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: Arc<DecodingKey>,
}

/// A JWKS and the time when it was read. One task reads it at a time; others use the keys at hand.
struct Set {
    source: Source,
    keys: RwLock<Vec<Key>>,
    last_fetch: tokio::sync::Mutex<LastFetch>,
}

struct LastFetch {
    at: Instant,
    /// Time of the last read for an unknown key.
    for_unknown: Option<Instant>,
}

enum Source {
    File(PathBuf),
    Url(String, reqwest::Client),
}

impl Keys {
    pub(crate) async fn load(
        secret: Option<&Zeroizing<String>>,
        public_key: Option<&Path>,
        jwks: Option<&str>,
    ) -> anyhow::Result<Keys> {
        let mut given = Vec::new();
        if let Some(secret) = secret {
            given.push(Key::new(None, Algorithm::HS256, DecodingKey::from_secret(secret.as_bytes())));
        }
        if let Some(file) = public_key {
            let pem = std::fs::read(file)
                .with_context(|| format!("jwt-public-key: cannot read {}", file.display()))?;
            given.push(
                of_pem(&pem).with_context(|| format!("jwt-public-key: cannot use {}", file.display()))?,
            );
        }
        let set = match jwks {
            Some(place) => Some(Set::load(place).await?),
            None => None,
        };
        Ok(Keys { given, set })
    }

    /// Reads a JWKS with the client of a test.
    #[cfg(test)]
    pub(crate) async fn over(url: &str, client: reqwest::Client) -> anyhow::Result<Keys> {
        let source = Source::Url(url.to_owned(), client);
        let keys = source.read().await?;
        Ok(Keys { given: Vec::new(), set: Some(Set::new(source, keys)) })
    }

    /// Returns the keys that fit the header of a token.
    pub(crate) async fn of(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<Arc<DecodingKey>> {
        let mut found: Vec<_> = fitting(&self.given, None, algorithm);
        if let Some(set) = &self.set {
            found.extend(set.of(id, algorithm).await);
        }
        found
    }
}

impl Key {
    fn new(id: Option<String>, algorithm: Algorithm, key: DecodingKey) -> Key {
        Key { id, algorithm, key: Arc::new(key) }
    }
}

fn fitting(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Vec<Arc<DecodingKey>> {
    let fits = |key: &&Key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id);
    keys.iter().filter(fits).map(|key| key.key.clone()).collect()
}

fn of_pem(pem: &[u8]) -> anyhow::Result<Key> {
    if let Ok(key) = DecodingKey::from_ed_pem(pem) {
        return Ok(Key::new(None, Algorithm::EdDSA, key));
    }
    match DecodingKey::from_rsa_pem(pem) {
        Ok(key) => Ok(Key::new(None, Algorithm::RS256, key)),
        Err(_) => bail!("it is not an RSA or Ed25519 public key in PEM"),
    }
}

impl Set {
    async fn load(place: &str) -> anyhow::Result<Set> {
        let source = Source::of(place)?;
        let keys = source.read().await.with_context(|| format!("jwt-jwks: cannot use {place}"))?;
        Ok(Set::new(source, keys))
    }

    fn new(source: Source, keys: Vec<Key>) -> Set {
        let last_fetch = LastFetch { at: Instant::now(), for_unknown: None };
        Set { source, keys: RwLock::new(keys), last_fetch: tokio::sync::Mutex::new(last_fetch) }
    }

    async fn of(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<Arc<DecodingKey>> {
        let is_known = !self.known(id, algorithm).is_empty();
        self.renew(is_known).await;
        self.known(id, algorithm)
    }

    fn known(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<Arc<DecodingKey>> {
        fitting(&self.keys.read().unwrap_or_else(PoisonError::into_inner), id, algorithm)
    }

    /// Reads the set again if it is old, or if a key is unknown and the last read for an unknown key is long enough ago. If
    /// the source fails, the keys stay as they are.
    async fn renew(&self, is_known: bool) {
        let Ok(mut last_fetch) = self.last_fetch.try_lock() else { return };
        let is_fresh = last_fetch.at.elapsed() < FRESH;
        let has_asked = last_fetch.for_unknown.is_some_and(|at| at.elapsed() < ASK_PAUSE);
        if is_fresh && (is_known || has_asked) {
            return;
        }
        last_fetch.at = Instant::now();
        if !is_known {
            last_fetch.for_unknown = Some(last_fetch.at);
        }
        match self.source.read().await {
            Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys,
            Err(error) => tracing::warn!(
                error = format!("{error:#}"),
                "the JWKS could not be read; keys from the last read are used"
            ),
        }
    }
}

impl Source {
    fn of(place: &str) -> anyhow::Result<Source> {
        if place.starts_with("http://") {
            bail!(
                "jwt-jwks: {place} is not https, so the keys could be replaced on the way; use an https URL or a file"
            );
        }
        if !place.starts_with("https://") {
            return Ok(Source::File(PathBuf::from(place)));
        }
        let client = reqwest::Client::builder().timeout(FETCH_TIMEOUT).https_only(true).build()?;
        Ok(Source::Url(place.to_owned(), client))
    }

    async fn read(&self) -> anyhow::Result<Vec<Key>> {
        let bytes = match self {
            // The file is small and rarely read, so a blocking read is acceptable.
            Source::File(file) => std::fs::read(file)?,
            Source::Url(url, client) => fetch(client, url).await?,
        };
        let set: JwkSet = serde_json::from_slice(&bytes).context("it is not a JWKS")?;
        let keys: Vec<Key> = set.keys.iter().filter_map(of_jwk).collect();
        match keys.is_empty() {
            true => bail!("it has no key for RS256 or EdDSA"),
            false => Ok(keys),
        }
    }
}

async fn fetch(client: &reqwest::Client, url: &str) -> anyhow::Result<Vec<u8>> {
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > JWKS_MAX {
            bail!("it is larger than {JWKS_MAX} bytes");
        }
    }
    Ok(bytes)
}

/// Returns a public key for signatures; other keys, above all symmetric ones, are ignored.
fn of_jwk(jwk: &Jwk) -> Option<Key> {
    if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let (algorithm, name) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, "RS256"),
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, "EdDSA")
        }
        _ => return None,
    };
    let said = jwk.common.key_algorithm.as_ref().map(ToString::to_string);
    if said.is_some_and(|said| said != name) {
        return None;
    }
    Some(Key::new(jwk.common.key_id.clone(), algorithm, DecodingKey::from_jwk(jwk).ok()?))
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({} given{})", self.given.len(), if self.set.is_some() { ", a JWKS" } else { "" })
    }
}
