//! Definitions compiled and values checked for requests, on threads that tenants share in turn. What a request costs here
//! is its tenant's choice, so it runs neither on a thread that serves HTTP nor before another tenant's.

use crate::problem::Problem;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use tokio::sync::oneshot;
use windlass_engine::{FairThreads, Refused, Waiting, WaitingMax};
use windlass_store::Tenant;

/// Threads: a tenant holds all but one of them. A compilation takes up to about 100 MiB, so there are few.
const THREADS: std::ops::RangeInclusive<usize> = 2..=4;

/// Requests that wait for a thread, and the bytes that they hold meanwhile. Sixteen largest definitions of one tenant, and
/// of four such tenants at once.
const WAITING_MAX: WaitingMax = WaitingMax {
    tenant: Waiting { jobs: 64, bytes: 16 << 20 },
    total: Waiting { jobs: 512, bytes: 64 << 20 },
};

/// Seconds after which a refused request may find room.
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
    /// Does work of a tenant that holds so many bytes of its request.
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
                let message = "too many definitions of the tenant wait to be compiled; send fewer at a time";
                Problem::too_many(message, RETRY_SECONDS)
            }
            Refused::Total => Problem::unavailable("too many definitions wait to be compiled"),
        })?;
        answer.await.map_err(|_| Problem::internal("compiling a definition panicked"))
    }
}
