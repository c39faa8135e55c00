//! How many executions of a tenant may be open at a time.

use crate::app::App;
use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use windlass_store::{Access, Tenant};

/// A place among the open executions is free when another one ends, which nobody knows before.
const RETRY_SECONDS: u64 = 5;

/// Of each tenant that has a limit: no more than so many are open. Starts are counted, ends are not, so the number is
/// looked up again only when it has come to the limit.
#[derive(Debug, Default)]
pub struct OpenExecutions {
    at_most: Mutex<HashMap<Tenant, usize>>,
}

impl OpenExecutions {
    /// Takes the place of one more execution, or answers 429.
    pub async fn take(&self, app: &App, tenant: &Tenant) -> Result<(), Problem> {
        let Some(limit) = app.directory.open_executions(tenant, &app.settings) else { return Ok(()) };
        if self.counted(tenant, limit) {
            return Ok(());
        }
        let of = tenant.clone();
        let open = app.readers.look(move |reader| reader.open_executions(&of, limit)).await?;
        self.at_most.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), open);
        match self.counted(tenant, limit) {
            true => Ok(()),
            false => {
                let message =
                    format!("the tenant has {open} executions that have not ended, which is its limit");
                Err(Problem::too_many(message, RETRY_SECONDS))
            }
        }
    }

    /// One more, if there is surely room.
    fn counted(&self, tenant: &Tenant, limit: usize) -> bool {
        let mut at_most = self.at_most.lock().unwrap_or_else(PoisonError::into_inner);
        // What was open before the first start is not known.
        let Some(open) = at_most.get_mut(tenant) else { return false };
        let is_room = *open < limit;
        *open += usize::from(is_room);
        is_room
    }
}
