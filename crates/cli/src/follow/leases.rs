//! What is not in a journal: which offers a worker has taken.

use windlass_dialects::view::{Leases, Taken};
use windlass_kernel::{ExecutionId, RunId};
use windlass_store::Reader;

/// Offers read at a time.
const PAGE: usize = 1_000;

/// What workers have of an execution, and since when.
pub fn leases(reader: &mut impl Reader, id: ExecutionId) -> anyhow::Result<Leases> {
    let mut leases = Leases::new();
    let mut after = (id, RunId(0));
    loop {
        let offers = reader.offers(Some(after), PAGE)?;
        for offer in offers.iter().filter(|offer| offer.execution == id) {
            let lease = offer.lease.as_ref();
            let since = lease.and_then(|lease| lease.started_at);
            let progress = offer.progress.as_ref().map(
                |progress| serde_json::json!({ "step": progress.step, "percentage": progress.percentage }),
            );
            leases.extend(since.map(|since| (offer.run, Taken { since, progress })));
        }
        match offers.last() {
            Some(last) if offers.len() >= PAGE && last.execution == id => after = (id, last.run),
            _ => return Ok(leases),
        }
    }
}
