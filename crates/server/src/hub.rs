//! Wakes the followers of an execution when it changes. Followers read the change from the store, so that a slow one
//! takes no memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use windlass_kernel::ExecutionId;

#[derive(Debug, Default)]
pub struct Hub {
    followed: Mutex<HashMap<ExecutionId, Followed>>,
    /// Executions whose changes the listener for many executions waits for.
    marked: Mutex<Marked>,
    any: Notify,
    /// Listeners that only need to know that something changed.
    router: Notify,
    uploader: Notify,
}

/// A listener that only needs to know that something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    Router,
    Uploader,
}

#[derive(Debug, Default)]
struct Marked {
    executions: HashSet<ExecutionId>,
    changed: HashSet<ExecutionId>,
}

#[derive(Debug, Default)]
struct Followed {
    bell: Arc<Notify>,
    count: usize,
}

/// A follower of an execution, until it is dropped.
#[derive(Debug)]
pub struct Follow {
    hub: Arc<Hub>,
    execution: ExecutionId,
    bell: Arc<Notify>,
}

impl Hub {
    /// Notes changes. Called from the engine's thread.
    pub fn changed(&self, executions: &[ExecutionId]) {
        let followed = self.lock();
        if !followed.is_empty() {
            for execution in executions {
                if let Some(found) = followed.get(execution) {
                    found.bell.notify_waiters();
                }
            }
        }
        drop(followed);
        let mut marked = self.marked();
        let Marked { executions: wanted, changed } = &mut *marked;
        changed.extend(executions.iter().filter(|execution| wanted.contains(execution)));
        drop(marked);
        self.any.notify_one();
        self.router.notify_one();
        self.uploader.notify_one();
    }

    /// Waits for a change of any execution since the listener's last call.
    pub async fn changed_any(&self, listener: Listener) {
        match listener {
            Listener::Router => self.router.notified().await,
            Listener::Uploader => self.uploader.notified().await,
        }
    }

    /// Waits for a change of any execution since the last call, and returns the marked ones that changed. There is
    /// only one listener of this kind.
    pub async fn anything(&self) -> HashSet<ExecutionId> {
        self.any.notified().await;
        std::mem::take(&mut self.marked().changed)
    }

    /// Reports the changes of an execution to the listener from now on, and one change at once.
    pub fn mark(&self, execution: ExecutionId) {
        let mut marked = self.marked();
        marked.executions.insert(execution);
        marked.changed.insert(execution);
        drop(marked);
        self.any.notify_one();
    }

    pub fn unmark(&self, execution: ExecutionId) {
        self.marked().executions.remove(&execution);
    }

    fn marked(&self) -> MutexGuard<'_, Marked> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn follow(self: &Arc<Self>, execution: ExecutionId) -> Follow {
        let mut followed = self.lock();
        let found = followed.entry(execution).or_default();
        found.count += 1;
        Follow { hub: self.clone(), execution, bell: found.bell.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follow {
    /// Completes after the next change. Call it, then read, then wait: a change in between is not missed.
    pub fn next(&self) -> OwnedNotified {
        self.bell.clone().notified_owned()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let mut followed = self.hub.lock();
        if let Some(found) = followed.get_mut(&self.execution) {
            found.count -= 1;
            if found.count == 0 {
                followed.remove(&self.execution);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ExecutionId = ExecutionId(1);
    const OTHER: ExecutionId = ExecutionId(2);

    #[tokio::test]
    async fn a_change_between_asking_and_waiting_is_not_missed() {
        let hub = Arc::new(Hub::default());
        let follow = hub.follow(ONE);
        let next = follow.next();
        hub.changed(&[OTHER, ONE]);
        next.await;
    }

    #[tokio::test]
    async fn a_change_of_another_execution_wakes_no_follower_and_a_dropped_one_is_removed() {
        let hub = Arc::new(Hub::default());
        let (follow, second) = (hub.follow(ONE), hub.follow(ONE));
        let next = follow.next();
        hub.changed(&[OTHER]);
        tokio::select! {
            biased;
            () = next => panic!("woken by another's change"),
            () = std::future::ready(()) => {}
        }
        drop(follow);
        assert_eq!(hub.lock().len(), 1);
        drop(second);
        assert!(hub.lock().is_empty());
    }

    #[tokio::test]
    async fn a_listener_to_many_executions_learns_which_changed_before() {
        let hub = Hub::default();
        hub.changed(&[ONE]);
        assert!(hub.anything().await.is_empty());
        hub.mark(ONE);
        assert_eq!(hub.anything().await, HashSet::from([ONE]));
        hub.changed(&[OTHER, ONE]);
        hub.changed(&[OTHER]);
        assert_eq!(hub.anything().await, HashSet::from([ONE]));
        hub.unmark(ONE);
        hub.changed(&[ONE]);
        assert!(hub.anything().await.is_empty());
    }
}
