//! `windlass evidence verify`: the file is read record by record, so its length does not matter.

use crate::data::Data;
use crate::exit;
use crate::format::{counted, plain};
use crate::progress::say;
use anyhow::Context;
use serde_json::Value;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use windlass_engine::Folder;
use windlass_server::anchor::Anchor;
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::vault::LocalVault;
use windlass_views::{EvidenceChain, UniqueKeys};

/// Largest record, or answer of the API, that is read into memory. Answers have about one MiB.
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// Description of the first problem of a file.
type Finding = String;

/// Checks a file. With `needs_anchor`, because the folder with the key was named, a file without its anchor is refused.
pub fn run(file: &Path, data: &Data, needs_anchor: bool) -> anyhow::Result<ExitCode> {
    let opened: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(file).with_context(|| format!("cannot read {}", file.display()))?),
    };
    let mut check = FileCheck::default();
    let found = match check.read(opened)? {
        Some(finding) => Some(finding),
        None => check.finish(data, needs_anchor)?,
    };
    match found {
        Some(finding) => {
            writeln!(io::stdout(), "{}", plain(&finding))?;
            Ok(ExitCode::from(exit::FAILED))
        }
        None => {
            say(&format!("{} verified: none was changed", counted(check.chain.count(), "record")));
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[derive(Default)]
struct FileCheck {
    chain: EvidenceChain,
    /// Signed end of the chain.
    anchor: Option<Anchor>,
}

impl FileCheck {
    /// Reads records, one per line, or an answer of the API. Returns the first problem.
    fn read(&mut self, file: impl Read) -> anyhow::Result<Option<Finding>> {
        let left = &Cell::new(VALUE_BYTES_MAX);
        let source = BufReader::new(Bounded { inner: file, left });
        for value in serde_json::Deserializer::from_reader(source).into_iter::<UniqueKeys>() {
            left.set(VALUE_BYTES_MAX);
            let found = match value {
                Ok(UniqueKeys(value)) => self.take(value),
                Err(error) if error.is_io() => return Err(io::Error::from(error).into()),
                Err(error) => Some(format!("record {} of the file is not valid: {error}", self.place())),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn place(&self) -> u64 {
        self.chain.count() + 1
    }

    fn take(&mut self, value: Value) -> Option<Finding> {
        match value {
            Value::Object(mut whole) if whole.contains_key("evidence") => {
                let Some(Value::Array(records)) = whole.remove("evidence") else {
                    return Some("`evidence` in the file is not a list".to_owned());
                };
                let found = records.into_iter().find_map(|record| self.take_record(record));
                found.or_else(|| self.take_anchor(whole.remove("anchor")))
            }
            record => self.take_record(record),
        }
    }

    fn take_record(&mut self, mut record: Value) -> Option<Finding> {
        if self.anchor.is_some() {
            return Some(format!(
                "record {} of the file follows the anchored end of the chain",
                self.place()
            ));
        }
        let anchor = record.as_object_mut().and_then(|fields| fields.shift_remove("anchor"));
        match self.chain.check(record) {
            Ok(()) => self.take_anchor(anchor),
            Err(bad) => Some(bad.to_string()),
        }
    }

    fn take_anchor(&mut self, anchor: Option<Value>) -> Option<Finding> {
        let anchor = match serde_json::from_value::<Anchor>(anchor?) {
            Ok(anchor) => anchor,
            Err(error) => return Some(format!("the anchor cannot be read: {error}")),
        };
        if self.chain.last() != Some((&anchor.evidence_id, &anchor.hash_sha256)) {
            let id = &anchor.evidence_id;
            return Some(format!(
                "the anchor belongs to {id}: records after it were added, or it was cut off"
            ));
        }
        self.anchor = Some(anchor);
        None
    }

    /// Checks the end of the chain.
    fn finish(&self, data: &Data, needs_anchor: bool) -> anyhow::Result<Option<Finding>> {
        if let Err(bad) = self.chain.finish(self.anchor.is_some()) {
            return Ok(Some(bad.to_string()));
        }
        match &self.anchor {
            Some(anchor) => check_anchor(anchor, data, needs_anchor),
            None if needs_anchor => Ok(Some(
                "the file has no anchor, so its records may all have been replaced; export it again with --jsonl"
                    .to_owned(),
            )),
            None => {
                say("the file has no anchor: only the order and the content of its records are checked");
                Ok(None)
            }
        }
    }
}

/// Returns the problem of an anchor; None if it is correct, or if there is no key to check it with.
fn check_anchor(anchor: &Anchor, data: &Data, needs_key: bool) -> anyhow::Result<Option<Finding>> {
    if !Folder::store(data.folder()).exists() {
        if needs_key {
            let folder = data.folder().display();
            return Ok(Some(format!("the anchor cannot be checked: {folder} is not a data folder")));
        }
        say("the anchor is not checked: its key is in the data folder that created it (--data DIR)");
        return Ok(None);
    }
    let seal = LocalVault::of(data.folder(), EngineSecrets::from_environment())?.audit_seal()?;
    Ok(match seal {
        Some(seal) if seal.id() != anchor.key_id => {
            let (key, own) = (&anchor.key_id, seal.id());
            Some(format!("the anchor was signed with the key {key}, and the folder has {own}"))
        }
        Some(seal) if anchor.is_by(&seal) => None,
        Some(_) => Some("the anchor was not signed with the key that it names".to_owned()),
        None => Some("the anchor cannot be checked: the folder has no key".to_owned()),
    })
}

/// A source that refuses to fill the memory with one value. Buffered bytes of the next value count, too.
struct Bounded<'c, R> {
    inner: R,
    left: &'c Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let Some(left) = self.left.get().checked_sub(read as u64) else {
            let limit = VALUE_BYTES_MAX >> 20;
            return Err(io::Error::other(format!("a record has more than {limit} MiB, which is the limit")));
        };
        self.left.set(left);
        Ok(read)
    }
}
