//! Sessions of workers outside of the server, and their groups.

use super::{ServerSite, entry, reader};
use crate::commit::{Applied, Session};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::workers::{RunnerGroup, WorkerSession, Workers as _};
use windlass_kernel::Millis;

fn session(id: u64) -> WorkerSession {
    let (tenant, group, cluster) = (Tenant::new("a"), "gpu".to_owned(), Some("eu".to_owned()));
    let (digest, opened_at, expires_at) = ([7; 32], Millis(5), Millis(35));
    let (slots, worker) = (u32::try_from(id).unwrap_or_default(), format!("host-{id}"));
    WorkerSession { id: Session(id), digest, tenant, group, cluster, slots, worker, opened_at, expires_at }
}

pub fn sessions_of_workers_are_kept_until_they_are_closed<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let open = |id| Entry::WorkerSession(Box::new(session(id)));
    let renew = |id| Entry::WorkerRenewed { session: Session(id), expires_at: Millis(65) };
    let close = |id| Entry::WorkerClosed { session: Session(id) };
    let cases = [
        (open(u64::MAX), Applied::Done),
        (open(2), Applied::Done),
        (open(2), Applied::Duplicate),
        (renew(2), Applied::Done),
        (renew(3), Applied::Duplicate),
        (close(u64::MAX), Applied::Done),
        (close(u64::MAX), Applied::Duplicate),
        (open(1), Applied::Done),
    ];
    for (write, applied) in cases {
        assert_eq!(entry(&mut store, write.clone()), applied, "{write:?}");
    }
    drop(store);
    let renewed = WorkerSession { expires_at: Millis(65), ..session(2) };
    assert_eq!(reader(&site.open()).worker_sessions(), Ok(vec![session(1), renewed]));
}

pub fn a_group_of_workers_belongs_to_one_tenant<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let group = |tenant: &str, cluster: Option<&str>, at| RunnerGroup {
        tenant: Tenant::new(tenant),
        name: "gpu".to_owned(),
        cluster: cluster.map(str::to_owned),
        created_at: Millis(at),
        updated_at: Millis(at),
    };
    let put = |group: RunnerGroup| Entry::RunnerGroup(Box::new(group));
    let delete =
        |tenant: &str| Entry::RunnerGroupDeleted { tenant: Tenant::new(tenant), name: "gpu".to_owned() };
    let cases = [
        (put(group("b", None, 1)), Applied::Done),
        (put(group("a", None, 2)), Applied::Done),
        (put(group("a", Some("eu"), 3)), Applied::Done),
        (put(group("c", None, 4)), Applied::Done),
        (delete("c"), Applied::Done),
        (delete("c"), Applied::Duplicate),
    ];
    for (write, applied) in cases {
        assert_eq!(entry(&mut store, write.clone()), applied, "{write:?}");
    }
    drop(store);
    let changed = RunnerGroup { created_at: Millis(2), ..group("a", Some("eu"), 3) };
    assert_eq!(reader(&site.open()).runner_groups(), Ok(vec![changed, group("b", None, 1)]));
}
