//! Memory of JSON values. A text like `[0,0,…]` takes eighty times its size: a response that is within its bound as a
//! text may be far beyond the memory of a worker.

use crate::tools::TenantBounds;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Maximum nesting of a value from outside. A deeper one could be parsed once, and not again inside of the records that
/// contain it.
pub(crate) const DEPTH_MAX: u32 = 96;

/// Maximum memory of one value from outside. A usual response takes about ten times its size, so this is about 20 MB of
/// JSON.
pub(crate) const VALUE_MEMORY_MAX: u64 = 192 << 20;

/// Maximum memory of the result of a program of the tenant: about 50 MB of usual rows. The program could take as much
/// memory itself, so this is more than for a response from outside.
const RESULT_MEMORY_MAX: u64 = 512 << 20;

/// Maximum memory of response texts of one tenant that are being read at a time. Further ones wait.
const TEXTS_BYTES_MAX: u64 = 128 << 20;

/// Maximum memory of large values of one tenant at a time: at least the largest. Further ones wait.
const VALUES_MEMORY_MAX: u64 = VALUE_MEMORY_MAX;

/// Size below which values are not counted: the slots bound their number.
const SMALL: u64 = 1 << 20;

/// Size from which text is scanned or parsed away from the pool's only thread.
const LARGE_TEXT: usize = 256 * 1024;

/// Memory of an element of a list: a value of 72 bytes, and the reserve of a growing list.
const ELEMENT: u64 = 112;
/// Memory of an entry of a map: hash, key, value, an allocation for the key, and the reserve of a growing map.
const ENTRY: u64 = 208;
/// Memory of a map or list that is not empty.
const CONTAINER: u64 = 96;

/// Reason for which a worker refuses a text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is nested deeper than {DEPTH_MAX} levels")]
    Deep,
    #[error(
        "it would take about {} MiB of memory, more than the maximum of {} MiB; request fewer items",
        .0 >> 20, VALUE_MEMORY_MAX >> 20
    )]
    Large(u64),
    #[error("{0}")]
    NoJson(#[from] serde_json::Error),
    #[error("{0}")]
    Defect(#[from] tokio::task::JoinError),
}

/// A result that would take more memory than is allowed.
#[derive(Debug, thiserror::Error)]
#[error("it takes about {} MiB of memory, and {} MiB", .0 >> 20, RESULT_MEMORY_MAX >> 20)]
pub(crate) struct OversizedResult(u64);

/// Estimates the memory of a JSON text as a value. The estimate for other text has no meaning.
pub(crate) fn estimate(json: &[u8]) -> Result<u64, Unusable> {
    let (mut memory, mut depth, mut maps) = (json.len() as u64, 0_u32, 0_u128);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                if depth == DEPTH_MAX {
                    return Err(Unusable::Deep);
                }
                memory += CONTAINER + if *byte == b'[' { ELEMENT } else { 0 };
                maps = (maps << 1) | u128::from(*byte == b'{');
                depth += 1;
            }
            b']' | b'}' => {
                maps >>= 1;
                depth = depth.saturating_sub(1);
            }
            b':' => memory += ENTRY,
            b',' if maps & 1 == 0 => memory += ELEMENT,
            _ => {}
        }
    }
    Ok(memory)
}

/// Memory of one tenant for large responses.
#[derive(Debug)]
pub(crate) struct Room {
    /// Permits are KiB.
    texts: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Room {
        let permits = |bytes: u64| Arc::new(Semaphore::new(kib(bytes) as usize));
        Room { texts: permits(TEXTS_BYTES_MAX), values: permits(VALUES_MEMORY_MAX) }
    }
}

/// Memory that one unit of work holds: room for the value of its last call. A unit that holds room never waits for
/// more, except for a text that waits to become a value, so every wait ends.
#[derive(Debug)]
pub(crate) struct Share {
    bounds: Arc<TenantBounds>,
    value: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Share {
    pub(crate) fn new(bounds: Arc<TenantBounds>) -> Share {
        Share { bounds, value: Mutex::default() }
    }

    /// Frees the room of the last call. Must be called when its value is kept elsewhere.
    pub(crate) fn release(&self) {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for room for a text that is about to be read.
    pub(crate) async fn text(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        acquire(&self.bounds.room.texts, bytes.min(TEXTS_BYTES_MAX)).await
    }

    /// Waits for room for a value, and holds it until the next call.
    pub(crate) async fn value(&self, memory: u64) -> Result<(), Unusable> {
        if memory > VALUE_MEMORY_MAX {
            return Err(Unusable::Large(memory));
        }
        self.release();
        if memory > SMALL {
            let permit = acquire(&self.bounds.room.values, memory).await;
            *self.value.lock().unwrap_or_else(PoisonError::into_inner) = permit;
        }
        Ok(())
    }

    /// Waits for room for the result of a program, and holds it until the next call. A result that is larger than all
    /// room takes all of it.
    pub(crate) async fn result(&self, memory: u64) -> Result<(), OversizedResult> {
        if memory > RESULT_MEMORY_MAX {
            return Err(OversizedResult(memory));
        }
        self.release();
        if memory > SMALL {
            let permit = acquire(&self.bounds.room.values, memory.min(VALUES_MEMORY_MAX)).await;
            *self.value.lock().unwrap_or_else(PoisonError::into_inner) = permit;
        }
        Ok(())
    }

    /// Parses a text when there is room for its value. A large one is parsed on another thread than the pool's.
    pub(crate) async fn parse(&self, json: Vec<u8>) -> Result<Value, Unusable> {
        if json.len() < LARGE_TEXT {
            self.value(estimate(&json)?).await?;
            return Ok(serde_json::from_slice(&json)?);
        }
        let (json, memory) = spawn_blocking(move || {
            let memory = estimate(&json);
            (json, memory)
        })
        .await?;
        self.value(memory?).await?;
        Ok(spawn_blocking(move || serde_json::from_slice(&json)).await??)
    }
}

/// Waits for permits. The semaphore is never closed, so every wait ends.
async fn acquire(permits: &Arc<Semaphore>, bytes: u64) -> Option<OwnedSemaphorePermit> {
    Arc::clone(permits).acquire_many_owned(kib(bytes)).await.ok()
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_shape() {
        let check = |json: &str, memory: u64| {
            assert_eq!(estimate(json.as_bytes()).unwrap(), json.len() as u64 + memory, "{json}");
        };
        check("7", 0);
        check(r#""[{,:\"[""#, 0);
        check("[1,2,3]", CONTAINER + 3 * ELEMENT);
        check("[[],[]]", 3 * (CONTAINER + ELEMENT) + ELEMENT);
        check(r#"{"a":1,"b":[1,2]}"#, 2 * CONTAINER + 2 * ENTRY + 2 * ELEMENT);
        check("]]]]", 0);
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |depth: u32| "[".repeat(depth as usize);
        assert!(estimate(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert!(matches!(estimate(nested(DEPTH_MAX + 1).as_bytes()), Err(Unusable::Deep)));
    }
}
