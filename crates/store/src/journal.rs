//! The stored form of records, which every later release can read: JSON, a format number, and a checksum over the
//! bytes and their place, so that a row that was truncated, corrupted or moved is reported and never skipped.

use crate::commit::CommitId;
use crate::store::Damage;
use windlass_kernel::{ExecutionId, Record};

/// Raised when the form of an event changes; older rows are still read, see the golden files.
pub const FORMAT: u32 = 1;

/// Initial size: most commits fit, and a larger one grows.
const BYTES: usize = 1_024;

/// The records of one commit as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub format: u32,
    pub checksum: u32,
    pub bytes: Vec<u8>,
}

#[must_use]
pub fn seal(execution: ExecutionId, version: u64, commit: CommitId, records: &[Record]) -> Sealed {
    let mut bytes = Vec::with_capacity(BYTES);
    // Writing plain data with string keys cannot fail.
    serde_json::to_writer(&mut bytes, records).expect("records are plain data");
    Sealed { format: FORMAT, checksum: checksum(execution, version, commit, FORMAT, &bytes), bytes }
}

/// Returns the records of a row, or what is wrong with it.
pub fn open(
    execution: ExecutionId,
    version: u64,
    commit: CommitId,
    sealed: &Sealed,
) -> Result<Vec<Record>, Damage> {
    let damage = |what: String| Damage { execution, version, what };
    if sealed.format == 0 || sealed.format > FORMAT {
        return Err(damage(format!("it has format {}, this program knows {FORMAT}", sealed.format)));
    }
    if checksum(execution, version, commit, sealed.format, &sealed.bytes) != sealed.checksum {
        return Err(damage("its checksum does not fit its bytes".to_owned()));
    }
    serde_json::from_slice(&sealed.bytes)
        .map_err(|error| damage(format!("it is not a list of records: {error}")))
}

fn checksum(execution: ExecutionId, version: u64, commit: CommitId, format: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&execution.0.to_be_bytes());
    hasher.update(&version.to_be_bytes());
    hasher.update(&commit.0.to_be_bytes());
    hasher.update(&format.to_be_bytes());
    hasher.update(bytes);
    hasher.finalize()
}
