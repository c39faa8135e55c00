//! Copies artifacts into a bucket, and ends executions that wait for that. Pending work is stored as rows: this module
//! reads them when something has changed, and after a restart. The data folder has every artifact before its copy
//! begins.
//!
//! | module | content |
//! |---|---|
//! | [`bucket`] | objects in a bucket: written, read and deleted |
//! | [`copies`] | copies of artifacts without files |
//! | [`waits`] | executions that wait for their uploads |
//! | [`files`] | files without rows, and files that can be removed |

mod bucket;
mod copies;
mod files;
mod waits;

pub use bucket::{Bucket, BucketError};
pub(crate) use copies::BucketCopies;

use crate::app::App;
use crate::host::now;
use crate::hub::Listener;
use crate::passes::{BackgroundWork, PASS_EVERY, run_passes};
use crate::problem::Problem;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use waits::Waits;
use windlass_kernel::Millis;
use windlass_store::{
    Applied, Entry, ObjectChange, ObjectState, ObjectWrite, Objects as _, StoredObject, Tenant,
};

/// Maximum number of attempts at a time. Each holds one part of a file in memory.
const ATTEMPTS_MAX: usize = 8;
/// Maximum number of attempts of one tenant at a time, so that large artifacts leave room for those of others.
const ATTEMPTS_OF_TENANT_MAX: usize = 6;
/// Time beyond the limit of an attempt after which it counts as lost.
const CLAIM_MARGIN: Duration = Duration::from_secs(60);

/// Copies artifacts until the process stops.
pub(crate) async fn run(app: Arc<App>, bucket: Arc<Bucket>) {
    let begin = [
        ObjectWrite::Place { place: bucket.place().to_owned(), at: now() },
        ObjectWrite::EndClaims { at: now() },
    ];
    if let Err(problem) = write(&app, begin.into()).await {
        // The engine is being stopped; the next process begins with the same rows.
        return tracing::warn!(%problem, "artifacts are not copied");
    }
    if let Err(problem) = files::put_found(&app).await {
        tracing::warn!(%problem, "files of artifacts are not compared with the rows; the next start does it");
    }
    let uploader = Uploader {
        app: app.clone(),
        bucket,
        attempts: JoinSet::new(),
        running: HashMap::new(),
        waits: Waits::default(),
        uploaded_bytes: 0,
    };
    run_passes(&app, uploader).await;
}

async fn write(app: &App, writes: Vec<ObjectWrite>) -> Result<Vec<Applied>, Problem> {
    let entries = writes.into_iter().map(|write| Entry::Object(Box::new(write)));
    app.store_entries(entries.collect()).await
}

struct Uploader {
    app: Arc<App>,
    bucket: Arc<Bucket>,
    attempts: JoinSet<Attempted>,
    running: HashMap<Id, Tenant>,
    waits: Waits,
    /// Bytes that were uploaded since files were last removed.
    uploaded_bytes: u64,
}

/// An attempt that has ended. The object is as it was claimed.
struct Attempted {
    object: StoredObject,
    result: Result<(), BucketError>,
}

impl BackgroundWork for Uploader {
    const NOUN: &'static str = "artifacts to copy";
    type Ended = Result<(Id, Attempted), JoinError>;

    /// Begins attempts that are due, and ends executions whose uploads are over. Returns the time until an attempt is
    /// due.
    async fn look(&mut self) -> Result<Duration, Problem> {
        let pause = self.begin_attempts().await?;
        self.waits.look(&self.app).await?;
        self.remove_copied_files().await?;
        Ok(pause)
    }

    async fn next_change(&mut self) -> Option<Self::Ended> {
        tokio::select! {
            () = self.app.hub.changed_any(Listener::Uploader) => None,
            Some(ended) = self.attempts.join_next_with_id() => Some(ended),
        }
    }

    async fn note(&mut self, ended: Self::Ended) {
        match ended {
            Ok((id, attempted)) => self.store_result(id, attempted).await,
            // The claim expires.
            Err(error) => drop(self.running.remove(&error.id())),
        }
    }
}

impl Uploader {
    async fn begin_attempts(&mut self) -> Result<Duration, Problem> {
        let each = ATTEMPTS_MAX + self.running.len();
        let listed = self.app.followers.look(move |reader| reader.due_objects(each)).await?;
        let at = now();
        let later = listed.iter().filter_map(|object| object.due.filter(|due| *due > at)).min();
        let chosen = choose(listed, &self.count_running(), at);
        let claims = chosen.iter().map(|object| {
            let until = at.plus(millis(Bucket::limit(object.bytes) + CLAIM_MARGIN));
            change(object, ObjectChange::Claim { until }, at)
        });
        let claims: Vec<ObjectWrite> = claims.collect();
        if !claims.is_empty() {
            let applied = write(&self.app, claims).await?;
            let claimed = chosen.into_iter().zip(applied);
            for (object, _) in claimed.filter(|(_, applied)| *applied == Applied::Done) {
                self.begin(StoredObject { attempts: object.attempts + 1, claimed: true, ..object });
            }
        }
        let pause = later.map(|due| Duration::from_millis(due.since(at)));
        Ok(pause.map_or(PASS_EVERY, |pause| pause.min(PASS_EVERY)))
    }

    fn count_running(&self) -> BTreeMap<Tenant, usize> {
        let mut counts = BTreeMap::new();
        for tenant in self.running.values() {
            *counts.entry(tenant.clone()).or_default() += 1;
        }
        counts
    }

    fn begin(&mut self, object: StoredObject) {
        let (app, bucket, tenant) = (self.app.clone(), self.bucket.clone(), object.tenant.clone());
        let task = self.attempts.spawn(async move {
            let result = attempt(&app, &bucket, &object).await;
            Attempted { object, result }
        });
        self.running.insert(task.id(), tenant);
    }

    /// Stores the result of an attempt; the next pass reads it.
    async fn store_result(&mut self, id: Id, Attempted { object, result }: Attempted) {
        self.running.remove(&id);
        let outcome = if result.is_ok() { "stored" } else { "failed" };
        if object.state != ObjectState::Unused {
            metrics::counter!("windlass_artifact_uploads_total", "result" => outcome).increment(1);
        }
        let attempt = object.attempts;
        let written = match result {
            Ok(()) if object.state == ObjectState::Unused => ObjectChange::Deleted { attempt },
            Ok(()) => {
                self.uploaded_bytes += object.bytes;
                ObjectChange::Uploaded { attempt }
            }
            Err(error) => {
                let StoredObject { tenant, key, .. } = &object;
                let is_last =
                    object.state == ObjectState::Waiting && attempt >= self.app.settings.uploads.attempts_max;
                if is_last {
                    tracing::error!(%tenant, key, attempt, %error, "an artifact was not uploaded in all attempts");
                } else {
                    tracing::warn!(%tenant, key, attempt, %error, "an object is not written or deleted; retrying");
                }
                let policy = self.app.settings.uploads;
                ObjectChange::Failed { attempt, error: error.to_string(), policy }
            }
        };
        if let Err(problem) = write(&self.app, vec![change(&object, written, now())]).await {
            tracing::warn!(%problem, "the result of an upload is not stored; it is repeated");
        }
    }
}

fn change(object: &StoredObject, change: ObjectChange, at: Millis) -> ObjectWrite {
    ObjectWrite::Change { tenant: object.tenant.clone(), key: object.key.clone(), change, at }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Chooses what is attempted next: the earliest of each tenant in turn, within the bounds.
fn choose(listed: Vec<StoredObject>, running: &BTreeMap<Tenant, usize>, at: Millis) -> Vec<StoredObject> {
    let mut taken = running.clone();
    let mut ranked = Vec::new();
    for object in listed.into_iter().filter(|object| object.due.is_some_and(|due| due <= at)) {
        let rank = taken.entry(object.tenant.clone()).or_default();
        if *rank < ATTEMPTS_OF_TENANT_MAX {
            ranked.push((*rank, object.due, object));
            *rank += 1;
        }
    }
    ranked.sort_by_key(|(rank, due, _)| (*rank, *due));
    let free = ATTEMPTS_MAX.saturating_sub(running.values().sum());
    ranked.into_iter().take(free).map(|(_, _, object)| object).collect()
}

async fn attempt(app: &App, bucket: &Bucket, object: &StoredObject) -> Result<(), BucketError> {
    let StoredObject { tenant, key, bytes, .. } = object;
    if object.state == ObjectState::Unused {
        return bucket.delete(tenant, key).await;
    }
    let found = {
        let (artifacts, tenant, key) = (app.artifacts.clone(), tenant.clone(), key.clone());
        app.run_blocking(move || artifacts.find_file(&tenant, &key)).await
    };
    match found {
        Ok(Ok(Some((file, length)))) => bucket.upload(tenant, key, file, length).await,
        // After a change of the bucket, the object may have been copied by other means.
        Ok(Ok(None)) if bucket.has(tenant, key, *bytes).await? => Ok(()),
        Ok(Ok(None)) => Err(BucketError::File(std::io::ErrorKind::NotFound)),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the file of an artifact cannot be found");
            Err(BucketError::File(std::io::ErrorKind::Other))
        }
        Err(_) => Err(BucketError::File(std::io::ErrorKind::Interrupted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(tenant: &str, due: i64) -> StoredObject {
        StoredObject {
            tenant: Tenant::new(tenant),
            key: format!("k{due}"),
            bytes: 1,
            state: ObjectState::Waiting,
            attempts: 0,
            claimed: false,
            due: Some(Millis(due)),
            error: None,
            put_at: Millis(due),
        }
    }

    fn chosen(listed: &[(&str, i64)], running: &[(&str, usize)]) -> Vec<(String, i64)> {
        let listed = listed.iter().map(|(tenant, due)| object(tenant, *due)).collect();
        let running = running.iter().map(|(tenant, count)| (Tenant::new(tenant), *count)).collect();
        let shown = |object: StoredObject| (object.tenant.to_string(), object.due.map_or(0, |due| due.0));
        choose(listed, &running, Millis(100)).into_iter().map(shown).collect()
    }

    fn pairs(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
        expected.iter().map(|(tenant, due)| ((*tenant).to_owned(), *due)).collect()
    }

    #[test]
    fn tenants_take_turns_and_none_takes_all_places() {
        let many: Vec<(&str, i64)> = (1..=9).map(|due| ("a", due)).chain([("b", 50), ("c", 101)]).collect();
        let expected = [("a", 1), ("b", 50), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("a", 6)];
        assert_eq!(chosen(&many, &[]), pairs(&expected), "c is not due");
        assert_eq!(chosen(&many, &[("a", 6)]), pairs(&[("b", 50)]));
        assert_eq!(chosen(&many, &[("a", 6), ("b", 1)]), pairs(&[("b", 50)]));
        assert_eq!(chosen(&many, &[("a", 6), ("c", 2)]), pairs(&[]));
    }
}
