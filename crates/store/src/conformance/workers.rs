//! Sessions of workers outside of the server, and their groups.

use super::world::{World, chain};
use super::{ServerSite, entry, reader, written};
use crate::commit::{Applied, Session, Write};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::workers::{ReportReceipt, RunnerGroup, WorkerSession, Workers as _};
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Fence, Millis, RunId};

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

pub fn receipts_of_reports_are_kept_until_they_are_dropped_or_their_session_is_closed<P: ServerSite>(
    site: &P,
) {
    let mut store = site.open();
    let receipt = |run: u64, session: u64, digest: u8| ReportReceipt {
        execution: ExecutionId(9),
        run: RunId(run),
        fence: Fence(run + 1),
        session: Session(session),
        digest: [digest; 32],
        at: Millis(i64::try_from(run * 10).unwrap_or_default()),
    };
    let put = |receipt: ReportReceipt| Entry::Receipt(Box::new(receipt));
    let writes = [
        Entry::WorkerSession(Box::new(session(1))),
        Entry::WorkerSession(Box::new(session(u64::MAX))),
        put(receipt(1, 1, 1)),
        put(receipt(2, 1, 2)),
        put(receipt(2, 1, 3)),
        put(receipt(3, u64::MAX, 4)),
        put(receipt(u64::MAX / 10, u64::MAX, 5)),
        Entry::ReceiptsDropped { session: Session(1), before: Millis(20) },
        Entry::WorkerClosed { session: Session(u64::MAX) },
    ];
    for write in writes {
        assert_eq!(entry(&mut store, write.clone()), Applied::Done, "{write:?}");
    }
    drop(store);
    let store = site.open();
    let mut reader = reader(&store);
    let mut found =
        |run, session| reader.receipt(ExecutionId(9), (RunId(run), Fence(run + 1)), Session(session));
    let expected = [Ok(None), Ok(Some([3; 32])), Ok(None), Ok(None)];
    assert_eq!([found(1, 1), found(2, 1), found(2, 2), found(3, u64::MAX)], expected);
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

pub fn an_artifact_belongs_to_the_execution_that_stored_it_and_its_sub_executions<P: ServerSite>(site: &P) {
    let net = chain(1);
    let mut store = site.open();
    let mut begin = |id: u128, trigger: &'static str, parent: Option<u128>| {
        let (_, mut commit) = World::create(&net, id);
        let creation = commit.creation.as_mut().expect("a creation");
        let origin = Arc::make_mut(&mut creation.origin);
        (origin.trigger, origin.parent) = (trigger.into(), parent.map(ExecutionId));
        written(&mut store, &[Write::Net(net.clone()), Write::Commit(Box::new(commit))]);
    };
    begin(1, "api", None);
    begin(2, "workflow", Some(1));
    begin(3, "workflow", Some(2));
    begin(4, "retry", Some(1));
    let owned = |id, artifacts: &[&str]| Entry::ArtifactsOwned {
        execution: ExecutionId(id),
        artifacts: artifacts.iter().map(|key| (*key).to_owned()).collect(),
    };
    let taken = |from, to| Entry::ArtifactsTakenOver { from: ExecutionId(from), to: ExecutionId(to) };
    for (write, applied) in [
        (owned(3, &["a", "b"]), Applied::Done),
        (owned(1, &["a"]), Applied::Duplicate),
        (owned(404, &["a"]), Applied::Duplicate),
        (owned(4, &["c"]), Applied::Done),
        (taken(2, 4), Applied::Done),
        (taken(2, 4), Applied::Duplicate),
    ] {
        assert_eq!(entry(&mut store, write.clone()), applied, "{write:?}");
    }
    drop(store);
    let store = site.open();
    let mut reader = reader(&store);
    let mut owns = |id, key: &str| reader.owns_artifact(ExecutionId(id), key).expect("an answer");
    for id in 1..4 {
        assert_eq!([owns(id, "a"), owns(id, "b"), owns(id, "c")], [true, true, false], "execution {id}");
    }
    assert_eq!([owns(4, "a"), owns(4, "b"), owns(4, "c"), owns(404, "a")], [true, true, true, false]);
}
