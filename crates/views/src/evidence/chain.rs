//! Verification of exported evidence, record by record, in constant memory.

use super::hash;
use serde_json::Value;
use std::fmt;

/// The chain as far as it was read.
#[derive(Debug, Clone, Default)]
pub struct EvidenceChain {
    /// Execution that the records belong to.
    execution: Option<String>,
    count: u64,
    last: Option<LastRecord>,
}

#[derive(Debug, Clone)]
struct LastRecord {
    id: String,
    hash: String,
    ends_execution: bool,
}

/// A record that is not as it was written, or not in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Id of the record, or its place in the file if it has none.
    record: String,
    reason: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.record, self.reason)
    }
}

impl EvidenceChain {
    /// Returns the number of records that were read.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns id and hash of the last record.
    #[must_use]
    pub fn last(&self) -> Option<(&str, &str)> {
        self.last.as_ref().map(|last| (last.id.as_str(), last.hash.as_str()))
    }

    /// Checks the next record: its own hash, its number, and the hash of the record before it.
    pub fn check(&mut self, mut record: Value) -> Result<(), BadRecord> {
        let place = self.count + 1;
        let text = |key: &str| record[key].as_str().map(str::to_owned);
        let (id, stated, previous) = (text("evidenceId"), text("hashSha256"), text("previousHash"));
        let bad = |name: Option<&str>, reason: String| {
            let record = name.map_or_else(|| format!("record {place} of the file"), str::to_owned);
            BadRecord { record, reason }
        };
        let Some(stated) = stated else { return Err(bad(id.as_deref(), "has no `hashSha256`".to_owned())) };
        let Some((execution, number)) = id.as_deref().and_then(split_id) else {
            return Err(bad(None, "has no valid `evidenceId`".to_owned()));
        };
        let ends_execution = record["category"] == "System" && record["terminal"] == true;
        let found = hash(&mut record);
        if found != stated {
            return Err(bad(id.as_deref(), "was changed: its content does not match its hash".to_owned()));
        }
        self.check_place(execution, number, previous.as_deref())
            .map_err(|reason| bad(id.as_deref(), reason))?;
        self.execution.get_or_insert_with(|| execution.to_owned());
        self.count = place;
        self.last = id.map(|id| LastRecord { id, hash: found, ends_execution });
        Ok(())
    }

    fn check_place(&self, execution: &str, number: u64, previous: Option<&str>) -> Result<(), String> {
        let expected = self.count + 1;
        let ours = self.execution.as_deref().unwrap_or(execution);
        if execution != ours {
            return Err(format!("belongs to another execution than the records before it ({ours})"));
        }
        if self.last.as_ref().is_some_and(|last| last.ends_execution) {
            return Err("follows the end of the execution: it was repeated or added".to_owned());
        }
        if number < expected {
            return Err(
                "appears a second time, or was moved: records before it have higher numbers".to_owned()
            );
        }
        if number > expected {
            let missing = format!("{execution}.{expected}");
            return Err(format!("is not the next record: {missing} is missing, or records were reordered"));
        }
        if previous != self.last.as_ref().map(|last| last.hash.as_str()) {
            return Err(
                "does not contain the hash of the record before it: that record was replaced".to_owned()
            );
        }
        Ok(())
    }

    /// Checks that the chain is complete. `is_anchored` says that the server attested the last record as the end at the
    /// time of the export.
    pub fn finish(&self, is_anchored: bool) -> Result<(), BadRecord> {
        match &self.last {
            None => Err(BadRecord {
                record: "the file".to_owned(),
                reason: "has no records: export them with `windlass evidence ID --jsonl`".to_owned(),
            }),
            Some(last) if last.ends_execution || is_anchored => Ok(()),
            Some(last) => Err(BadRecord {
                record: last.id.clone(),
                reason: "is the last record and not the end of the execution: the rest was cut off, or the execution \
                         had not ended and the export has no anchor"
                    .to_owned(),
            }),
        }
    }
}

/// Splits an id into the execution and the number of the record.
fn split_id(id: &str) -> Option<(&str, u64)> {
    let (execution, number) = id.rsplit_once('.')?;
    Some((execution, number.parse().ok().filter(|number| *number > 0)?))
}
