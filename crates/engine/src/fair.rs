//! Threads that tenants share in turn, for work whose duration depends on a tenant's definitions and values. No tenant
//! holds all threads, and waiting tenants are served one piece each.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use windlass_store::Tenant;

/// A piece of work. It gets the context of its thread.
pub type Job<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Maximum amount of waiting work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub jobs: usize,
    pub bytes: usize,
}

/// Limits of the waiting work of one tenant, and of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingMax {
    pub tenant: Waiting,
    pub total: Waiting,
}

impl WaitingMax {
    /// Limits for work that is on disk and is found again if it is dropped.
    pub const UNBOUNDED: WaitingMax = WaitingMax {
        tenant: Waiting { jobs: usize::MAX, bytes: usize::MAX },
        total: Waiting { jobs: usize::MAX, bytes: usize::MAX },
    };
}

/// Reason for which work is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too much work of this tenant waits.
    Tenant,
    /// Too much work of all tenants waits.
    Total,
}

/// The threads. They end when this value is dropped; work that waits then is dropped undone.
pub struct FairThreads<C> {
    shared: Arc<Shared<C>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<C> {
    state: Mutex<State<C>>,
    changed: Condvar,
    /// Threads that one tenant may hold.
    each: usize,
    max: WaitingMax,
}

struct State<C> {
    tenants: BTreeMap<Tenant, Line<C>>,
    /// Tenants with waiting work, the next one first.
    turns: VecDeque<Tenant>,
    jobs: usize,
    bytes: usize,
    is_closed: bool,
}

/// One tenant's work.
struct Line<C> {
    waiting: VecDeque<(Job<C>, usize)>,
    bytes: usize,
    running: usize,
}

impl<C: Send + 'static> FairThreads<C> {
    /// Starts a thread for each context. With more than one thread, a tenant may hold all but one of them.
    pub fn start(name: &str, contexts: Vec<C>, max: WaitingMax) -> std::io::Result<FairThreads<C>> {
        let tenants = BTreeMap::new();
        let state = State { tenants, turns: VecDeque::new(), jobs: 0, bytes: 0, is_closed: false };
        let each = contexts.len().saturating_sub(1).max(1);
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), each, max });
        let mut threads = FairThreads { shared, threads: Vec::new() };
        for (number, context) in contexts.into_iter().enumerate() {
            let shared = threads.shared.clone();
            let thread = std::thread::Builder::new().name(format!("windlass-{name}-{number}"));
            threads.threads.push(thread.spawn(move || shared.serve(context))?);
        }
        Ok(threads)
    }

    /// Enqueues work of a tenant. `bytes` is the memory that it holds while it waits.
    pub fn submit(&self, tenant: &Tenant, bytes: usize, job: Job<C>) -> Result<(), Refused> {
        let mut state = self.shared.lock();
        let WaitingMax { tenant: each, total } = self.shared.max;
        if state.jobs >= total.jobs || state.bytes.saturating_add(bytes) > total.bytes {
            return Err(Refused::Total);
        }
        let empty = || Line { waiting: VecDeque::new(), bytes: 0, running: 0 };
        let line = state.tenants.entry(tenant.clone()).or_insert_with(empty);
        if line.waiting.len() >= each.jobs || line.bytes.saturating_add(bytes) > each.bytes {
            return Err(Refused::Tenant);
        }
        let is_first = line.waiting.is_empty();
        line.waiting.push_back((job, bytes));
        line.bytes += bytes;
        if is_first {
            state.turns.push_back(tenant.clone());
        }
        state.jobs += 1;
        state.bytes += bytes;
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl<C> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut context: C) {
        while let Some((tenant, job)) = self.next() {
            // A panic ends only its own piece of work; the thread continues with the next one.
            let _ = catch_unwind(AssertUnwindSafe(|| job(&mut context)));
            self.done(&tenant);
        }
    }

    /// Waits for work that may begin; None when the threads end.
    fn next(&self) -> Option<(Tenant, Job<C>)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(next) = state.take(self.each) {
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, tenant: &Tenant) {
        let mut state = self.lock();
        if let Some(line) = state.tenants.get_mut(tenant) {
            line.running -= 1;
            if line.running == 0 && line.waiting.is_empty() {
                state.tenants.remove(tenant);
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl<C> State<C> {
    /// Takes one piece of the next tenant that is below its maximum of threads.
    fn take(&mut self, each: usize) -> Option<(Tenant, Job<C>)> {
        let may_begin = |tenant: &Tenant| self.tenants.get(tenant).is_some_and(|line| line.running < each);
        let place = self.turns.iter().position(may_begin)?;
        let tenant = self.turns.remove(place)?;
        let line = self.tenants.get_mut(&tenant)?;
        let (job, bytes) = line.waiting.pop_front()?;
        line.running += 1;
        line.bytes -= bytes;
        self.jobs -= 1;
        self.bytes -= bytes;
        if !line.waiting.is_empty() {
            self.turns.push_back(tenant.clone());
        }
        Some((tenant, job))
    }
}

impl<C> Drop for FairThreads<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.tenants.clear();
        state.turns.clear();
        drop(state);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<C> std::fmt::Debug for FairThreads<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FairThreads").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

    fn threads(count: usize, max: WaitingMax) -> FairThreads<()> {
        FairThreads::start("test", vec![(); count], max).unwrap()
    }

    fn names(done: &Sender<&'static str>, name: &'static str) -> Job<()> {
        let done = done.clone();
        Box::new(move |()| {
            let _ = done.send(name);
        })
    }

    /// Holds its thread until the sender is dropped.
    fn waits(held: Receiver<()>) -> Job<()> {
        Box::new(move |()| {
            let _ = held.recv();
        })
    }

    #[test]
    fn a_tenant_that_floods_leaves_a_thread_to_others() {
        let threads = threads(2, WaitingMax::UNBOUNDED);
        let (flooding, calm) = (Tenant::new("flood"), Tenant::new("calm"));
        let (hold, held) = bounded::<()>(0);
        for _ in 0..100 {
            let held = held.clone();
            threads.submit(&flooding, 0, waits(held)).unwrap();
        }
        let (done, did) = unbounded();
        threads.submit(&calm, 0, names(&done, "calm")).unwrap();
        assert_eq!(did.recv(), Ok("calm"), "it does not wait for the flood");
        drop(hold);
    }

    #[test]
    fn tenants_take_turns() {
        let threads = threads(1, WaitingMax::UNBOUNDED);
        let (hold, held) = bounded::<()>(0);
        threads.submit(&Tenant::new("first"), 0, waits(held)).unwrap();
        let (done, did) = unbounded();
        for name in ["a", "a", "a", "b"] {
            threads.submit(&Tenant::new(name), 0, names(&done, name)).unwrap();
        }
        drop(hold);
        let order: Vec<&str> = (0..4).map(|_| did.recv().unwrap()).collect();
        assert_eq!(order, ["a", "b", "a", "a"]);
    }

    #[test]
    fn what_waits_is_bounded_and_a_panic_ends_only_its_work() {
        let one = Waiting { jobs: 2, bytes: 10 };
        let threads = threads(1, WaitingMax { tenant: one, total: Waiting { jobs: 3, bytes: 100 } });
        let (hold, held) = bounded::<()>(0);
        let (begun, begins) = bounded(1);
        let first: Job<()> = Box::new(move |()| {
            let _ = begun.send(());
            let _ = held.recv();
            panic!("as a defect would");
        });
        threads.submit(&Tenant::new("first"), 0, first).unwrap();
        begins.recv().unwrap();
        let (done, did) = unbounded();
        let submit = |tenant: &str, bytes| threads.submit(&Tenant::new(tenant), bytes, names(&done, "done"));
        assert_eq!(submit("a", 11), Err(Refused::Tenant), "too many bytes");
        assert_eq!([submit("a", 5), submit("a", 5)], [Ok(()), Ok(())]);
        assert_eq!(submit("a", 0), Err(Refused::Tenant), "too many jobs");
        assert_eq!(submit("b", 10), Ok(()));
        assert_eq!(submit("c", 0), Err(Refused::Total));
        drop(hold);
        assert_eq!((0..3).map(|_| did.recv()).filter(Result::is_ok).count(), 3);
    }
}
