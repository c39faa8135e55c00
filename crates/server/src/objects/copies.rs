//! Copies of artifacts without files, fetched for workers and for decisions.

use super::{Bucket, BucketError};
use crate::database::DatabaseReader;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;
use windlass_store::{ArtifactCopies, ObjectState, Objects as _, StoredObject, Tenant, Upload};

/// Time limit of a fetch of any size, well below the time after which a thread of the engine counts as stalled, and
/// the minimum speed beyond it.
const FETCH_BASE: Duration = Duration::from_secs(15);
const SLOWEST_BYTES_PER_SECOND: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct BucketCopies {
    bucket: Arc<Bucket>,
    runtime: Handle,
    rows: Mutex<DatabaseReader>,
}

impl BucketCopies {
    /// Creates the copies on the runtime of the caller, which must outlive everything that reads artifacts.
    pub(crate) fn new(bucket: Arc<Bucket>, rows: DatabaseReader) -> BucketCopies {
        BucketCopies { bucket, runtime: Handle::current(), rows: Mutex::new(rows) }
    }

    fn find(&self, tenant: &Tenant, key: &str) -> Result<Option<StoredObject>, String> {
        let found = self.rows.lock().unwrap_or_else(PoisonError::into_inner).object(tenant, key);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.filter(|object| object.state == ObjectState::Stored))
    }
}

impl ArtifactCopies for BucketCopies {
    fn fetch(&self, tenant: &Tenant, key: &str, to: &mut Upload) -> Result<bool, String> {
        let Some(object) = self.find(tenant, key)? else { return Ok(false) };
        let limit = FETCH_BASE + Duration::from_secs(object.bytes / SLOWEST_BYTES_PER_SECOND);
        let fetch = timeout(limit, self.bucket.fetch(tenant, key, to));
        match self.runtime.block_on(fetch) {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(BucketError::TooSlow.to_string()),
        }
    }
}
