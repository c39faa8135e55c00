//! Threads that render the calls of workers and evaluate their results. The definitions of a tenant determine how long
//! templates take, so they run neither on the threads that serve HTTP nor ahead of those of other tenants.

use super::lock;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::{Context, Wake, Waker};
use std::thread::available_parallelism;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use windlass_engine::{FairThreads, WaitingMax};
use windlass_store::Tenant;

/// Number of threads, of which a tenant uses all but one.
const THREADS: std::ops::RangeInclusive<usize> = 2..=4;

#[derive(Debug, Clone)]
pub(super) struct RenderThreads(Arc<FairThreads<()>>);

impl Default for RenderThreads {
    fn default() -> RenderThreads {
        let count = available_parallelism().map_or(1, NonZeroUsize::get);
        RenderThreads::new(count.clamp(*THREADS.start(), *THREADS.end()))
    }
}

impl RenderThreads {
    fn new(count: usize) -> RenderThreads {
        // The number of waiting pieces is bounded elsewhere: a request has one at a time, and connections are counted.
        let threads = FairThreads::start("render", vec![(); count], WaitingMax::UNBOUNDED);
        RenderThreads(Arc::new(threads.expect("the system can start a thread")))
    }

    /// Runs a future of a tenant to its end. Each of its turns is one piece of work in the tenant's queue; while it
    /// waits, it uses no thread. Returns None if it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        let running: Running = Box::pin(async move { drop(done.send(future.await)) });
        let task = Arc::new(RenderTask {
            tenant: tenant.clone(),
            threads: self.clone(),
            runtime: Handle::current(),
            running: Mutex::new(Some(running)),
            is_woken: AtomicBool::new(false),
        });
        task.wake();
        result.await.ok()
    }
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

struct RenderTask {
    tenant: Tenant,
    threads: RenderThreads,
    /// Runtime for timers and sockets of the future.
    runtime: Handle,
    /// None after it has ended.
    running: Mutex<Option<Running>>,
    /// Whether it was woken since its last turn began.
    is_woken: AtomicBool,
}

impl Wake for RenderTask {
    fn wake(self: Arc<Self>) {
        let (threads, tenant) = (self.threads.clone(), self.tenant.clone());
        // There is no limit that it could exceed.
        let _ = threads.0.submit(&tenant, 0, Box::new(move |()| self.advance_run()));
    }
}

impl RenderTask {
    fn advance_run(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let mut slot = match self.running.try_lock() {
            Ok(slot) => slot,
            // Another thread has the turn; it sees the flag at the end of it.
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(_)) => lock(&self.running),
        };
        self.is_woken.store(false, Ordering::SeqCst);
        let Some(mut running) = slot.take() else { return };
        let _inside = self.runtime.enter();
        let waker = Waker::from(Arc::clone(&self));
        if running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *slot = Some(running);
        }
        drop(slot);
        if self.is_woken.load(Ordering::SeqCst) {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Duration, sleep};

    fn thread() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_future_runs_on_a_thread_of_its_own_and_holds_none_while_it_waits() {
        let (threads, tenant) = (RenderThreads::new(1), Tenant::new("a"));
        let (go, gone) = oneshot::channel();
        let first = threads.run(&tenant, async {
            gone.await.expect("a word of the second");
            sleep(Duration::from_millis(1)).await;
            thread()
        });
        let second = threads.run(&tenant, async {
            go.send(()).expect("the first waits for it");
            tokio::task::yield_now().await;
            thread()
        });
        let (first, second) = tokio::join!(first, second);
        let of_its_own = Some("windlass-render-0".to_owned());
        assert_eq!([first, second], [of_its_own.clone(), of_its_own]);
    }

    #[tokio::test]
    async fn a_future_that_panics_ends_and_its_thread_continues() {
        let threads = RenderThreads::new(1);
        let tenant = Tenant::new("a");
        let broken = async {
            tokio::task::yield_now().await;
            panic!("as a test");
        };
        assert_eq!(threads.run::<()>(&tenant, broken).await, None);
        assert_eq!(threads.run(&tenant, async { 7 }).await, Some(7));
    }
}
