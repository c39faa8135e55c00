//! Large values of a run: stored apart from the cursor, and read through their references.

use crate::failure::failure;
use crate::footprint::estimate;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_artifact::{Artifact, Source, key, set_aside};
use windlass_protocol::{Failure, codes};

/// Maximum memory of loaded values; others are loaded again. A run over many pages keeps a few of them.
const LOADED_MEMORY_MAX: u64 = 64 << 20;

/// Reason for which a value cannot be computed now.
#[derive(Debug)]
pub(super) enum RenderError {
    /// Artifacts have to be loaded first.
    Needs(Vec<String>),
    /// Secrets have to be opened first.
    Opens(Vec<String>),
    Failed(Box<Failure>),
}

impl From<Box<Failure>> for RenderError {
    fn from(failure: Box<Failure>) -> RenderError {
        RenderError::Failed(failure)
    }
}

#[derive(Debug)]
pub(super) struct LargeValues {
    inline_bytes: usize,
    /// None if the value is missing or damaged.
    loaded: BTreeMap<String, Option<Arc<Value>>>,
    loaded_memory: u64,
    /// Values to store before a reference to them leaves the run.
    unkept: Vec<Artifact>,
    needs: RefCell<BTreeSet<String>>,
    gone: RefCell<Option<String>>,
}

impl LargeValues {
    pub(super) fn new(inline_bytes: usize) -> LargeValues {
        LargeValues {
            inline_bytes,
            loaded: BTreeMap::new(),
            loaded_memory: 0,
            unkept: Vec::new(),
            needs: RefCell::default(),
            gone: RefCell::default(),
        }
    }

    /// Returns the value, or the reference that replaces it.
    pub(super) fn replace_large(&mut self, value: Value, source: Source) -> Value {
        let Some((reference, artifact)) = set_aside(&value, source, self.inline_bytes) else { return value };
        self.make_room(&artifact.bytes);
        self.loaded.insert(artifact.key.clone(), Some(Arc::new(value)));
        self.unkept.push(artifact);
        reference
    }

    /// Returns fields with references in place of large values. A rendered value may look like a reference by
    /// accident.
    pub(super) fn replace_large_fields(&mut self, fields: Map<String, Value>) -> Map<String, Value> {
        fields.into_iter().map(|(key, value)| (key, self.replace_large(value, Source::Outside))).collect()
    }

    pub(super) fn loaded_memory(&self) -> u64 {
        self.loaded_memory
    }

    pub(super) fn take_unkept(&mut self) -> Vec<Artifact> {
        std::mem::take(&mut self.unkept)
    }

    pub(super) fn put(&mut self, key: String, bytes: Option<&[u8]>) {
        self.make_room(bytes.unwrap_or_default());
        let value = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok());
        self.loaded.insert(key, value.map(Arc::new));
    }

    /// Evicts loaded values if there is no room. Values that are loaded together stay: none is evicted while they are
    /// collected.
    fn make_room(&mut self, json: &[u8]) {
        // A value that is nested too deep to be measured counts as large.
        let memory = estimate(json).unwrap_or(LOADED_MEMORY_MAX);
        if self.needs.borrow().is_empty() && self.loaded_memory + memory > LOADED_MEMORY_MAX {
            self.loaded.clear();
            self.loaded_memory = 0;
        }
        self.loaded_memory += memory;
    }

    /// Returns the value that a reference refers to, or the value itself.
    pub(super) fn resolve<'v>(&'v self, value: Cow<'v, Value>) -> Option<Cow<'v, Value>> {
        let Some(key) = key(&value) else { return Some(value) };
        match self.loaded.get(key) {
            Some(Some(value)) => return Some(Cow::Borrowed(value)),
            Some(None) => *self.gone.borrow_mut() = Some(key.to_owned()),
            None => drop(self.needs.borrow_mut().insert(key.to_owned())),
        }
        None
    }

    /// Returns the result, unless values were missing: it was computed without them.
    pub(super) fn settled<T>(&self, result: Result<T, Box<Failure>>) -> Result<T, RenderError> {
        let needs = self.needs.borrow();
        if !needs.is_empty() {
            return Err(RenderError::Needs(needs.iter().cloned().collect()));
        }
        match self.gone.take() {
            Some(key) => Err(not_available(&key).into()),
            None => Ok(result?),
        }
    }

    /// Forgets the requested values, which are loaded now.
    pub(super) fn satisfied(&mut self) {
        self.needs.borrow_mut().clear();
    }
}

pub(crate) fn not_available(key: &str) -> Box<Failure> {
    let message = format!("the stored value {key} is missing or damaged");
    let mut failed = failure(codes::REFERENCE_NOT_AVAILABLE, message);
    failed.retryable = Some(true);
    failed
}
