//! A bucket of S3, or of a server with the same protocol. The key of an object has the digest of its bytes, which is
//! verified whenever the whole object is transferred.

use crate::settings::BucketSettings;
use axum::body::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as ObjectPath;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, Error as StoreError, GetOptions, GetRange, GetResult,
    MultipartUpload, ObjectStore as _, ObjectStoreExt as _, PutPayload, RetryConfig,
};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use windlass_artifact::{KeyHasher, key_of};
use windlass_store::{Tenant, Upload, artifact_path};

/// Bytes of an object that are sent at once, and held in memory for each upload. S3 takes 10,000 parts, which is more than the
/// maximum size of an artifact.
const PART_BYTES: u64 = 8 << 20;
/// Time limit of a connection, and of the wait for a response after a request was sent.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const READ_MAX: &str = "30s";
/// Number of retries of one request. Longer failures are left to later attempts, which are stored as rows.
const RETRIES_MAX: usize = 2;
const RETRIES_WITHIN: Duration = Duration::from_secs(20);
/// Time limit of an upload of any size, and the minimum speed beyond it.
const UPLOAD_BASE: Duration = Duration::from_secs(60);
const SLOWEST_BYTES_PER_SECOND: u64 = 64 << 10;
/// Name of the object that a starting server writes to check its access.
const PROBE: &str = "windlass-probe";

/// A bucket, under one prefix of its keys.
pub struct Bucket {
    store: AmazonS3,
    prefix: String,
    place: String,
}

/// Reason why an object cannot be written or read. Tenants see its text, which therefore has no addresses; the log has
/// the details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    #[error("the bucket of the setting `artifacts` does not exist")]
    NoBucket,
    #[error("the object is missing in the bucket of the setting `artifacts`")]
    Missing,
    #[error("the bucket of the setting `artifacts` refuses access")]
    Denied,
    #[error("the bucket of the setting `artifacts` cannot be reached")]
    Unreachable,
    #[error("the bucket of the setting `artifacts` took too long")]
    TooSlow,
    #[error("the bucket of the setting `artifacts` answered with an error")]
    Failed,
    #[error("the bytes of the object do not match its checksum")]
    Damaged,
    #[error("the file in the data folder cannot be read: {0}")]
    File(io::ErrorKind),
}

/// Leaves out the credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("place", &self.place).finish_non_exhaustive()
    }
}

impl BucketError {
    /// Returns whether a later attempt may succeed without a change of the settings or of the bucket.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, BucketError::Unreachable | BucketError::TooSlow | BucketError::Failed)
    }
}

impl Bucket {
    pub fn new(settings: &BucketSettings) -> anyhow::Result<Bucket> {
        // The client has no time limit, because a request with many bytes takes long; every use has a limit of its
        // own.
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(CONNECT_MAX)
            .with_config(ClientConfigKey::ReadTimeout, READ_MAX);
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            // Not every server supports the signature of deletions of many objects at once.
            .with_disable_bulk_delete(true)
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(settings.key_id.as_str())
            .with_secret_access_key(settings.secret_key.as_str())
            .with_retry(RetryConfig {
                backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() },
                max_retries: RETRIES_MAX,
                retry_timeout: RETRIES_WITHIN,
            });
        if let Some(token) = &settings.session_token {
            builder = builder.with_token(token.as_str());
        }
        builder = match &settings.endpoint {
            // Servers other than AWS rarely have a host name for every bucket.
            Some(endpoint) => {
                builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"))
            }
            None => builder.with_virtual_hosted_style_request(true),
        };
        Ok(Bucket { store: builder.build()?, prefix: settings.prefix.clone(), place: settings.place() })
    }

    /// Returns the maximum time of an upload.
    #[must_use]
    pub fn limit(length: u64) -> Duration {
        UPLOAD_BASE + Duration::from_secs(length / SLOWEST_BYTES_PER_SECOND)
    }

    /// Returns the name of the place.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    fn path(&self, name: &str) -> ObjectPath {
        ObjectPath::from(format!("{}/{name}", self.prefix))
    }

    fn object(&self, tenant: &Tenant, key: &str) -> Result<ObjectPath, BucketError> {
        artifact_path(tenant, key).map(|path| self.path(&path)).ok_or(BucketError::Missing)
    }

    /// Checks that a server can later write, read and delete objects.
    pub async fn check(&self) -> Result<(), BucketError> {
        let (path, content) = (self.path(PROBE), Bytes::from_static(b"windlass"));
        let check = async {
            self.store.put(&path, PutPayload::from_bytes(content.clone())).await?;
            let read = self.store.get(&path).await?.bytes().await?;
            self.store.delete(&path).await?;
            Ok(read)
        };
        let read = within(UPLOAD_BASE, check).await?;
        if read == content { Ok(()) } else { Err(BucketError::Damaged) }
    }

    /// Uploads a file whose content has this key. If the content has another key, nothing is stored.
    pub async fn upload(
        &self,
        tenant: &Tenant,
        key: &str,
        file: PathBuf,
        length: u64,
    ) -> Result<(), BucketError> {
        let path = self.object(tenant, key)?;
        let upload = async {
            let file = spawn_blocking(move || File::open(file)).await.map_err(io::Error::other).flatten();
            let file = file.map_err(|error| BucketError::File(error.kind()))?;
            match length <= PART_BYTES {
                true => self.upload_small(&path, key, file).await,
                false => self.upload_parts(&path, key, file).await,
            }
        };
        timeout(Bucket::limit(length), upload).await.unwrap_or(Err(BucketError::TooSlow))
    }

    async fn upload_small(&self, path: &ObjectPath, key: &str, file: File) -> Result<(), BucketError> {
        let (_, bytes) = read_part(file).await?;
        if key_of(&bytes) != key {
            return Err(BucketError::Damaged);
        }
        self.store.put(path, PutPayload::from_bytes(bytes)).await.map_err(|error| classify(&error))?;
        Ok(())
    }

    async fn upload_parts(&self, path: &ObjectPath, key: &str, file: File) -> Result<(), BucketError> {
        let mut upload = self.store.put_multipart(path).await.map_err(|error| classify(&error))?;
        let sent = send_parts(&mut *upload, file).await;
        let done = match sent {
            Ok(found) if found == key => upload.complete().await.map(drop).map_err(|error| classify(&error)),
            Ok(_) => Err(BucketError::Damaged),
            Err(error) => Err(error),
        };
        if done.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::warn!(%error, "cannot remove the parts of a failed upload from the bucket");
        }
        done
    }

    /// Returns whether the object exists with this length.
    pub async fn has(&self, tenant: &Tenant, key: &str, length: u64) -> Result<bool, BucketError> {
        let path = self.object(tenant, key)?;
        match within(UPLOAD_BASE, async { self.store.head(&path).await }).await {
            Ok(found) => Ok(found.size == length),
            Err(BucketError::Missing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object, also one that does not exist.
    pub async fn delete(&self, tenant: &Tenant, key: &str) -> Result<(), BucketError> {
        let path = self.object(tenant, key)?;
        match within(UPLOAD_BASE, async { self.store.delete(&path).await }).await {
            Ok(()) | Err(BucketError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads a part of an object as a stream. The last piece of a whole object is sent after its digest was verified.
    pub async fn read(
        &self,
        tenant: &Tenant,
        key: &str,
        length: u64,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, BucketError> {
        let path = self.object(tenant, key)?;
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let is_whole = range == (0..length);
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let found = within(UPLOAD_BASE, async { self.store.get_opts(&path, options).await }).await?;
        let pieces = found.into_stream().map_err(|error| io::Error::other(classify(&error)));
        Ok(if is_whole { checked(pieces.boxed(), key, length) } else { pieces.boxed() })
    }

    /// Writes an object into a file that is being received. The caller verifies its key.
    pub(crate) async fn fetch(&self, tenant: &Tenant, key: &str, to: &mut Upload) -> Result<(), BucketError> {
        let path = self.object(tenant, key)?;
        let found = self.store.get(&path).await.map_err(|error| classify(&error))?;
        let mut pieces = GetResult::into_stream(found);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| classify(&error))?;
            to.write(&piece).map_err(|error| {
                tracing::warn!(%error, "an artifact that is fetched cannot be written");
                BucketError::File(io::ErrorKind::Other)
            })?;
        }
        Ok(())
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, BucketError> {
    match timeout(limit, work).await {
        Ok(done) => done.map_err(|error| classify(&error)),
        Err(_) => Err(BucketError::TooSlow),
    }
}

/// Sends a file part by part, and returns the key of what was sent.
async fn send_parts(upload: &mut dyn MultipartUpload, mut file: File) -> Result<String, BucketError> {
    let mut hasher = KeyHasher::default();
    loop {
        let (rest, part) = read_part(file).await?;
        if part.is_empty() {
            return Ok(hasher.finish());
        }
        file = rest;
        hasher.update(&part);
        upload.put_part(PutPayload::from_bytes(part)).await.map_err(|error| classify(&error))?;
    }
}

/// Reads the next part of a file; an empty one at its end.
async fn read_part(file: File) -> Result<(File, Bytes), BucketError> {
    let read = move || {
        let mut part = Vec::new();
        (&file).take(PART_BYTES).read_to_end(&mut part)?;
        Ok((file, Bytes::from(part)))
    };
    let read = spawn_blocking(read).await.map_err(io::Error::other).flatten();
    read.map_err(|error: io::Error| BucketError::File(error.kind()))
}

/// Verifies the digest of all pieces before the last one is sent.
fn checked(
    pieces: BoxStream<'static, io::Result<Bytes>>,
    key: &str,
    length: u64,
) -> BoxStream<'static, io::Result<Bytes>> {
    let state = (pieces, KeyHasher::default(), 0_u64, key.to_owned());
    let next = move |(mut pieces, mut hasher, before, key): (
        BoxStream<'static, io::Result<Bytes>>,
        _,
        _,
        String,
    )| async move {
        let Some(piece) = pieces.try_next().await? else {
            return match before == length {
                true => Ok(None),
                false => Err(io::Error::other(BucketError::Damaged)),
            };
        };
        KeyHasher::update(&mut hasher, &piece);
        let received = before + piece.len() as u64;
        if received >= length && hasher.clone().finish() != key {
            return Err(io::Error::other(BucketError::Damaged));
        }
        Ok(Some((piece, (pieces, hasher, received, key))))
    };
    stream::try_unfold(state, next).boxed()
}

/// Classifies an error. Its text has addresses of the operator, so it is written to the log only.
fn classify(error: &StoreError) -> BucketError {
    let text = describe(error);
    let found = match error {
        _ if text.contains("NoSuchBucket") => BucketError::NoBucket,
        StoreError::NotFound { .. } => BucketError::Missing,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => BucketError::Denied,
        _ if is_unreachable(&text) => BucketError::Unreachable,
        _ => BucketError::Failed,
    };
    if found != BucketError::Missing {
        tracing::warn!(error = text, "a request to the bucket of the setting `artifacts` failed");
    }
    found
}

fn is_unreachable(text: &str) -> bool {
    ["error sending request", "onnect", "dns error", "timed out", "connection closed"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// Maximum bytes of the text of an error: the response of a server may be a page.
const DESCRIBED_MAX: usize = 1_000;

/// Returns an error with its causes, without repetitions.
fn describe(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    let end = text.floor_char_boundary(DESCRIBED_MAX);
    text.truncate(end);
    text
}
