//! Who rows belong to.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A tenant by its id: `default`, or `tnt_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(pub Arc<str>);

impl Tenant {
    #[must_use]
    pub fn new(id: &str) -> Tenant {
        Tenant(id.into())
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Tenant::new("default")
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
