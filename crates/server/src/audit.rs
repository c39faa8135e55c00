//! Who did what: a row for every change that a caller makes, written by the transaction of the change.

use crate::auth::Caller;
use crate::host::now;
use serde_json::Value;
use windlass_store::{Audit, Author};

impl Caller {
    /// Says that this caller does it: goes with the request that asks for it.
    #[must_use]
    pub fn does(&self, action: &str, target: &str, details: Value) -> Audit {
        let Author { actor, role } = self.author();
        let (tenant, at) = (self.tenant.clone(), now());
        Audit { tenant, at, actor, role, action: action.to_owned(), target: target.to_owned(), details }
    }

    #[must_use]
    pub fn author(&self) -> Author {
        Author { actor: self.id.clone(), role: self.role.name().to_owned() }
    }
}
