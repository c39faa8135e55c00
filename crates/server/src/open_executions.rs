//! How many executions of a tenant may be open at a time.

use crate::app::App;
use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use windlass_store::{Access, Tenant};

/// A place among the open executions is free when another one ends, which nobody knows before.
const RETRY_SECONDS: u64 = 5;

/// Of each tenant that has a limit: no more than so many are open. Starts are counted, ends are not, so the number is
/// looked up again only when it has come to the limit.
#[derive(Debug, Default)]
pub struct OpenExecutions {
    rooms: Mutex<HashMap<Tenant, Arc<Room>>>,
}

/// A start on its way to the store, to be held until the engine has answered it.
pub type Place = OwnedRwLockReadGuard<()>;

/// The open executions of one tenant.
#[derive(Debug, Default)]
struct Room {
    /// Every start on its way holds it; whoever holds it alone finds all of them in the store.
    on_the_way: Arc<RwLock<()>>,
    known: Mutex<Known>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Known {
    #[default]
    Nothing,
    AtMost(usize),
    /// There was no room when it was last looked up; how many more than that are open is not known.
    Full {
        looked_at: Instant,
    },
}

impl OpenExecutions {
    /// Takes the place of one more execution, or answers 429. Without a limit no place is needed.
    pub async fn take(&self, app: &App, tenant: &Tenant) -> Result<Option<Place>, Problem> {
        let Some(limit) = app.directory.open_executions(tenant, &app.settings) else {
            self.lose_count(tenant);
            return Ok(None);
        };
        let (room, asked_at) = (self.room(tenant), Instant::now());
        let place = room.on_the_way.clone().read_owned().await;
        if room.takes(limit) {
            return Ok(Some(place));
        }
        drop(place);
        let alone = room.on_the_way.clone().write_owned().await;
        // Many may have waited for this moment: what one of them finds is true for all.
        if room.takes(limit) || (!room.was_full_after(asked_at) && room.looks(app, tenant, limit).await?) {
            return Ok(Some(alone.downgrade()));
        }
        let message = format!("the tenant has {limit} executions that have not ended, which is its limit");
        Err(Problem::too_many(message, RETRY_SECONDS))
    }

    fn room(&self, tenant: &Tenant) -> Arc<Room> {
        self.rooms().entry(tenant.clone()).or_default().clone()
    }

    /// Starts without a limit are not counted; a limit that comes later begins anew.
    fn lose_count(&self, tenant: &Tenant) {
        if let Some(room) = self.rooms().get(tenant) {
            *room.known() = Known::Nothing;
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<Tenant, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    /// One more, if there is surely room.
    fn takes(&self, limit: usize) -> bool {
        match &mut *self.known() {
            Known::AtMost(open) if *open < limit => {
                *open += 1;
                true
            }
            Known::AtMost(_) | Known::Nothing | Known::Full { .. } => false,
        }
    }

    fn was_full_after(&self, asked_at: Instant) -> bool {
        matches!(*self.known(), Known::Full { looked_at } if looked_at > asked_at)
    }

    /// One more, if the store has room. Nothing may be on its way there.
    async fn looks(&self, app: &App, tenant: &Tenant, limit: usize) -> Result<bool, Problem> {
        let (of, looked_at) = (tenant.clone(), Instant::now());
        let open = app.readers.of(tenant).look(move |reader| reader.open_executions(&of, limit)).await?;
        *self.known() = if open < limit { Known::AtMost(open) } else { Known::Full { looked_at } };
        Ok(self.takes(limit))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
