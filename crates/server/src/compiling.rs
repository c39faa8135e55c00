//! Threads that compile definitions and check values for requests. A tenant determines the cost of its requests, so
//! they run neither on the threads that serve HTTP nor ahead of those of other tenants.

use crate::problem::Problem;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use tokio::sync::oneshot;
use windlass_engine::{FairThreads, Refused, Waiting, WaitingMax};
use windlass_store::Tenant;

/// Number of threads, of which a tenant uses all but one. A compilation takes up to about 100 MiB, so there are few.
const THREADS: std::ops::RangeInclusive<usize> = 2..=4;

/// Maximum number of waiting requests, and of their bytes: sixteen definitions of maximum size per tenant, and four such
/// tenants.
const WAITING_MAX: WaitingMax = WaitingMax {
    tenant: Waiting { jobs: 64, bytes: 16 << 20 },
    total: Waiting { jobs: 512, bytes: 64 << 20 },
};

/// Seconds after which a refused request may be retried.
const RETRY_SECONDS: u64 = 1;

#[derive(Debug)]
pub struct Compiling(FairThreads<()>);

impl Default for Compiling {
    fn default() -> Compiling {
        let count =
            available_parallelism().map_or(1, NonZeroUsize::get).clamp(*THREADS.start(), *THREADS.end());
        let threads = FairThreads::start("compile", vec![(); count], WAITING_MAX);
        Compiling(threads.expect("the system can start a thread"))
    }
}

impl Compiling {
    /// Runs work of a tenant whose request has this number of bytes.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (done, answer) = oneshot::channel();
        let job = Box::new(move |(): &mut ()| drop(done.send(work())));
        self.0.submit(tenant, bytes, job).map_err(|refused| match refused {
            Refused::Tenant => {
                let message = "too many definitions of the tenant wait for compilation; send fewer at a time";
                Problem::too_many(message, RETRY_SECONDS)
            }
            Refused::Total => Problem::unavailable("too many definitions wait for compilation; retry later"),
        })?;
        answer.await.map_err(|_| Problem::internal("compiling a definition panicked"))
    }
}
