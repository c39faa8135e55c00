//! The simulated store is a store: it passes the suite that the production stores pass. And it fails on command.

use windlass_sim::system::{Fate, MemoryStore};
use windlass_store::conformance::StoreSite;
use windlass_store::{
    Definition, Reader, Store, StoreError, StoredManifest, Target, Tenant, Which, WorkflowId, Write,
};

struct Simulated(MemoryStore);

impl StoreSite for Simulated {
    type Store = MemoryStore;

    fn open(&self) -> MemoryStore {
        self.0.clone()
    }
}

mod suite {
    windlass_store::conformance_tests!(super::Simulated(super::MemoryStore::default()));
}

fn definition() -> Write {
    let step = windlass_kernel::net::Step::new("only", windlass_kernel::net::Work::noop());
    let spec = windlass_kernel::NetSpec { steps: vec![step], policy: Default::default() };
    Write::Define(Box::new(Definition {
        tenant: Tenant::default(),
        target: Target::Named(WorkflowId(1)),
        name: "one".into(),
        dialect: "simulated".into(),
        source: String::new(),
        workload: serde_json::Value::Null,
        manifest: StoredManifest::default(),
        net: windlass_kernel::Net::new(spec).expect("a net of one step").into(),
        hooks: Vec::new(),
        schedules: Vec::new(),
        at: windlass_kernel::Millis(1),
        status: None,
        author: None,
    }))
}

#[track_caller]
fn check(fate: Fate, is_answered: bool, is_kept: bool) {
    let mut store = MemoryStore::default();
    let mut reader = store.reader().expect("a reader");
    store.next_fate(fate);
    let answer = store.write(&[definition()]);
    assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
    assert!(answer.is_ok() || matches!(answer, Err(StoreError::Io(_))), "{answer:?}");
    assert_eq!(
        reader
            .find_definition(&Tenant::default(), &Which::Name("one".into()), None)
            .expect("a healthy store")
            .is_some(),
        is_kept
    );
    assert!(store.write(&[definition()]).is_ok(), "a fate is for one write");
}

#[test]
fn a_synced_write_is_answered_and_kept() {
    check(Fate::Synced, true, true);
}

#[test]
fn a_write_whose_sync_fails_is_not_kept() {
    check(Fate::FailedLost, false, false);
}

#[test]
fn a_write_whose_answer_is_lost_is_kept() {
    check(Fate::FailedKept, false, true);
}
