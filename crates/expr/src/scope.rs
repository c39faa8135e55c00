use std::borrow::Cow;

use crate::{Map, Value};

/// Source of the names of an expression. Only names that `reads()` lists are looked up.
pub trait Scope {
    /// Returns the value of `root`, or of the key right below it; `None` is undefined.
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>>;
}

/// A map whose top-level keys are the roots.
impl Scope for Map {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        let value = Map::get(self, root)?;
        match key {
            None => Some(Cow::Borrowed(value)),
            Some(key) => value.get(key).map(Cow::Borrowed),
        }
    }
}
