use std::borrow::Cow;

use crate::{Map, Value};

/// Where an expression's names come from. It is asked only for what `reads()` lists.
pub trait Scope {
    /// The value of `root`, or of the key right below it. `None` is undefined.
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>>;
}

/// The roots are the top-level keys.
impl Scope for Map {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        let value = Map::get(self, root)?;
        match key {
            None => Some(Cow::Borrowed(value)),
            Some(key) => value.get(key).map(Cow::Borrowed),
        }
    }
}
