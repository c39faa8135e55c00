//! The file with the current executions of all threads, for the next process if this one dies. It is written without a sync:
//! a write survives the process, and after a power failure no execution is suspect.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use windlass_kernel::ExecutionId;

const NAME: &str = "in-hand";

/// Length of the line of a thread: its name, the execution, and a mark. All lines have the same length, so that one write
/// replaces a line in place.
const LINE: usize = 56;

/// Mark of an execution that hung a thread.
const HUNG: &str = "hung";

/// Maximum size of the file; a larger one has other content.
const BYTES_MAX: u64 = 4_096;

/// An execution that the last process worked on when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldExecution {
    pub execution: ExecutionId,
    /// Whether it hung a thread.
    pub hung: bool,
}

/// The record of the last process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastProcess {
    /// Whether the process did not end regularly.
    pub died: bool,
    pub left: Vec<HeldExecution>,
}

#[derive(Debug)]
pub(crate) struct Record {
    /// None in a process without an engine.
    file: Option<(PathBuf, File)>,
    /// Whether every execution is written at once, not only those that take long.
    pub careful: bool,
}

impl Record {
    /// Reads the record of the last process, and creates a new one. After a process that died, every execution is written at
    /// once.
    pub(crate) fn open(folder: &Path) -> io::Result<(Record, LastProcess)> {
        let path = folder.join(NAME);
        let last = read(&path)?;
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let careful = last.died;
        Ok((Record { file: Some((path, file)), careful }, last))
    }

    /// Returns a record that is never written.
    pub(crate) fn unused() -> Record {
        Record { file: None, careful: false }
    }

    /// Writes the line of a thread. The space is allocated at the start, so that a full disk does not matter.
    pub(crate) fn write(&self, place: u64, thread: &str, held: Option<ExecutionId>, is_hung: bool) {
        let id = held.map(|id| id.to_string()).unwrap_or_default();
        let note = if is_hung { HUNG } else { "" };
        let line = format!("{thread:<8}{id:<40}{note:<7}\n");
        debug_assert_eq!(line.len(), LINE);
        if let Some((_, file)) = &self.file {
            let _ = file.write_at(line.as_bytes(), place * LINE as u64);
        }
    }

    /// Removes the file at a regular end of the process.
    pub(crate) fn remove(&self) {
        if let Some((path, _)) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn read(path: &Path) -> io::Result<LastProcess> {
    let text = match std::fs::metadata(path) {
        Ok(found) if found.len() > BYTES_MAX => String::new(),
        Ok(_) => String::from_utf8(std::fs::read(path)?).unwrap_or_default(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(LastProcess::default()),
        Err(error) => return Err(error),
    };
    let mut left: Vec<HeldExecution> = Vec::new();
    for one in text.lines().filter_map(parse) {
        match left.iter_mut().find(|known| known.execution == one.execution) {
            Some(known) => known.hung |= one.hung,
            None => left.push(one),
        }
    }
    Ok(LastProcess { died: true, left })
}

fn parse(line: &str) -> Option<HeldExecution> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let execution = ExecutionId(u128::from_str_radix(&words.next()?.replace('-', ""), 16).ok()?);
    Some(HeldExecution { execution, hung: words.next() == Some(HUNG) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_dies_leaves_its_executions_and_one_that_ends_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let (record, last) = Record::open(folder.path()).unwrap();
        assert_eq!((last, record.careful), (LastProcess::default(), false));
        let (first, second) = (ExecutionId(7), ExecutionId(u128::MAX));
        record.write(0, "lane", Some(first), false);
        record.write(1, "reader", None, false);
        record.write(2, "pool", Some(second), true);
        drop(record);
        let (record, last) = Record::open(folder.path()).unwrap();
        let left = [
            HeldExecution { execution: first, hung: false },
            HeldExecution { execution: second, hung: true },
        ];
        assert_eq!((last.left.as_slice(), record.careful), (&left[..], true));
        record.write(0, "lane", Some(first), false);
        record.write(0, "lane", None, false);
        assert_eq!(read(&folder.path().join(NAME)).unwrap(), LastProcess { died: true, left: Vec::new() });
        record.remove();
        assert_eq!(read(&folder.path().join(NAME)).unwrap(), LastProcess::default());
    }

    #[test]
    fn a_file_with_other_content_names_no_execution() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "lane", "lane zz\n", "\u{0}\u{0}\n\n", &"lane 7\n".repeat(1_000)] {
            std::fs::write(folder.path().join(NAME), text).unwrap();
            let (_, last) = Record::open(folder.path()).unwrap();
            assert_eq!(last, LastProcess { died: true, left: Vec::new() }, "{text:?}");
        }
    }
}
