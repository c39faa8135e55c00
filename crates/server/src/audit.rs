//! Who did what: an entry for every change that a caller makes.

use crate::auth::Caller;
use crate::host::now;
use serde_json::Value;
use windlass_store::{Audit, Entry};

impl Caller {
    /// The entry that says that this caller did it, to be kept together with what was done.
    #[must_use]
    pub fn did(&self, action: &str, target: &str, details: Value) -> Entry {
        Entry::Audit(Box::new(Audit {
            tenant: self.tenant.clone(),
            at: now(),
            actor: self.id.clone(),
            role: self.role.name().to_owned(),
            action: action.to_owned(),
            target: target.to_owned(),
            details,
        }))
    }
}
