//! The bucket for artifacts: of S3, or of a server with the same protocol. Its endpoint and its credentials come from
//! the variables that other clients of S3 read.

use super::BadSetting;
use std::fmt;
use windlass_secrets::Zeroizing;

/// Variables with credentials. Processes of steps do not inherit them.
pub const CREDENTIALS: [&str; 3] = [KEY_ID, SECRET_KEY, "AWS_SESSION_TOKEN"];
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const DEFAULT_REGION: &str = "us-east-1";

const SCHEME: &str = "s3://";
/// Lengths of names of buckets, as S3 has them.
const BUCKET_CHARS: std::ops::RangeInclusive<usize> = 3..=63;
/// Keys of S3 have at most 1,024 bytes; those of artifacts end with about 120 of their own.
const PREFIX_BYTES_MAX: usize = 512;

#[derive(Clone)]
pub struct BucketSettings {
    pub bucket: String,
    /// Segments before the keys of objects, without slashes at its ends.
    pub prefix: String,
    /// None: the endpoint of AWS.
    pub endpoint: Option<String>,
    pub region: String,
    pub key_id: Zeroizing<String>,
    pub secret_key: Zeroizing<String>,
    pub session_token: Option<Zeroizing<String>>,
}

impl BucketSettings {
    /// Reads the place, and the rest from the environment. `origin` names where the place was set.
    pub(super) fn read(
        place: &str,
        origin: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<BucketSettings, BadSetting> {
        let (bucket, prefix) = parse_place(place).ok_or_else(|| {
            BadSetting(format!("{origin}: `{place}` is not a place as in s3://BUCKET/PREFIX"))
        })?;
        let find =
            |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|text| !text.is_empty()));
        let secret = |name: &str| {
            find(&[name]).map(Zeroizing::new).ok_or_else(|| {
                BadSetting(format!(
                    "{origin}: artifacts in a bucket need credentials, and {name} is not set\n  \
                     hint: set {KEY_ID} and {SECRET_KEY} in the environment of the server"
                ))
            })
        };
        let endpoint = find(&ENDPOINTS);
        if let Some(endpoint) = &endpoint {
            check_endpoint(endpoint)?;
        }
        Ok(BucketSettings {
            bucket,
            prefix,
            endpoint: endpoint.map(|url| url.trim_end_matches('/').to_owned()),
            region: find(&REGIONS).unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            key_id: secret(KEY_ID)?,
            secret_key: secret(SECRET_KEY)?,
            session_token: find(&CREDENTIALS[2..]).map(Zeroizing::new),
        })
    }

    /// Returns the name of the place, which differs from that of every other place.
    #[must_use]
    pub fn place(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        let at = self.endpoint.as_deref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        format!("{SCHEME}{}{slash}{}{at}", self.bucket, self.prefix)
    }
}

fn parse_place(place: &str) -> Option<(String, String)> {
    let (bucket, prefix) = {
        let rest = place.strip_prefix(SCHEME)?;
        rest.split_once('/').unwrap_or((rest, ""))
    };
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_bucket = BUCKET_CHARS.contains(&bucket.len()) && bucket.bytes().all(is_name);
    let prefix = prefix.trim_end_matches('/');
    let is_segment = |segment: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !["", ".", ".."].contains(&segment) && segment.bytes().all(is_plain)
    };
    let is_prefix =
        prefix.len() <= PREFIX_BYTES_MAX && (prefix.is_empty() || prefix.split('/').all(is_segment));
    (is_bucket && is_prefix).then(|| (bucket.to_owned(), prefix.to_owned()))
}

/// Checks the endpoint. The URL is shown in messages, so it must not have a password.
fn check_endpoint(url: &str) -> Result<(), BadSetting> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains('@') => Ok(()),
        _ => Err(BadSetting(format!(
            "{} must be a URL without a user as in https://s3.example.com",
            ENDPOINTS[1]
        ))),
    }
}

impl fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketSettings").field("place", &self.place()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(place: &str, given: &[(&str, &str)]) -> Result<BucketSettings, String> {
        let variable =
            |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        BucketSettings::read(place, "--artifacts", &variable).map_err(|bad| bad.0)
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hidden-key")];

    #[test]
    fn a_place_is_a_bucket_and_a_prefix() {
        let names = |place: &str| read(place, &KEYS).ok().map(|read| (read.bucket, read.prefix));
        let found = |bucket: &str, prefix: &str| Some((bucket.to_owned(), prefix.to_owned()));
        assert_eq!(names("s3://one"), found("one", ""));
        assert_eq!(names("s3://one/"), found("one", ""));
        assert_eq!(names("s3://my.own-1/a/b_c/"), found("my.own-1", "a/b_c"));
        let long = format!("s3://one/{}", "a".repeat(PREFIX_BYTES_MAX + 1));
        for bad in
            ["", "one", "s3://", "s3://a", "s3://One", "s3://one//a", "s3://one/../b", "s3://one/a b", &long]
        {
            let refused = read(bad, &KEYS).unwrap_err();
            assert!(refused.contains("--artifacts") && refused.contains("s3://BUCKET/PREFIX"), "{refused}");
        }
    }

    #[test]
    fn credentials_are_required_and_never_shown() {
        for missing in 0..2 {
            let mut given = KEYS.to_vec();
            let (name, _) = given.remove(missing);
            let refused = read("s3://one", &given).unwrap_err();
            assert!(refused.contains(&format!("{name} is not set")), "{refused}");
            assert!(!refused.contains("hidden-key"));
        }
        let settings = read("s3://one/a", &KEYS).unwrap();
        assert_eq!(format!("{settings:?}"), "BucketSettings { place: \"s3://one/a\", .. }");
        assert_eq!((settings.region.as_str(), settings.endpoint), ("us-east-1", None));
    }

    #[test]
    fn an_endpoint_is_a_url_without_a_user() {
        let with = |url| read("s3://one", &[KEYS[0], KEYS[1], ("AWS_ENDPOINT_URL", url)]);
        assert_eq!(with("http://127.0.0.1:5000/").unwrap().place(), "s3://one at http://127.0.0.1:5000");
        for bad in ["127.0.0.1:5000", "http://", "ftp://x", "http://me:word@host"] {
            assert!(with(bad).unwrap_err().contains("AWS_ENDPOINT_URL"), "{bad}");
        }
    }
}
