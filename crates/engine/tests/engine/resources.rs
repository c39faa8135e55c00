//! Resources that workers reach through the engine: only under their fence, and only of the tenant of the execution.

use crate::rig::{Rig, chain, net, task};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass_engine::{Config, ResourceRequest, Resources};
use windlass_kernel::net::{Policy, Step, Work};
use windlass_protocol::{
    Call, Line, Log, NoRoom, Reply, ResourceAsk, ResourceCall, ResourceReply, SecretValue, Stream, Unit,
    Verdict,
};
use windlass_store::{Memories, MemoryQuery, Position, Reader, Tenant};

/// Every secret is the name of its tenant.
#[derive(Debug, Default)]
struct Held {
    is_full: AtomicBool,
}

impl Resources for Held {
    fn no_room(&self, _: &Tenant) -> Option<NoRoom> {
        self.is_full.load(Ordering::SeqCst).then(|| NoRoom::Quota("it is full".into()))
    }

    fn serve(&self, request: ResourceRequest) -> ResourceReply {
        match request.ask {
            ResourceAsk::OpenSecret { .. } => {
                ResourceReply::Secret(SecretValue(request.tenant.to_string().into()))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn rig() -> (Rig, Arc<Held>) {
    let held = Arc::new(Held::default());
    let config = Config { seed: 7, resources: held.clone(), ..Config::default() };
    (Rig::with_config(config, 1), held)
}

fn ask(rig: &Rig, unit: Unit, ask: ResourceAsk) -> ResourceReply {
    match rig.send(Call::Resource(Box::new(ResourceCall { unit, ask }))) {
        Reply::Resource(reply) => *reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_secret_is_opened_only_under_the_fence_that_is_held() {
    let (rig, _) = rig();
    rig.start("chain", chain(1), json!({}));
    let work = rig.work();
    let open = |unit| ask(&rig, unit, ResourceAsk::OpenSecret { name: "key".into() });
    let value = || ResourceReply::Secret(SecretValue("default".to_owned().into()));
    assert_eq!(open(work.unit), value());
    assert_eq!(open(Unit { fence: work.unit.fence + 1, ..work.unit }), ResourceReply::Stale);
    assert_eq!(open(Unit { execution: 1, ..work.unit }), ResourceReply::Stale);
    assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted);
    assert_eq!(open(work.unit), ResourceReply::Stale, "its work has ended");
    assert!(!format!("{:?}", value()).contains("default"), "no value is shown");
}

#[test]
fn a_memory_is_on_disk_when_its_worker_hears_of_it() {
    let (rig, _) = rig();
    let memory = json!({ "tasks": [{ "label": "m", "kind": "memory_store", "config": {} }] });
    let first = Step { work: Work::task(memory), ..task("m", &[1]) };
    rig.start("memory", net(Policy::default(), vec![first, task("other", &[])]), json!({}));
    let work = rig.work();
    let store = |unit| ask(&rig, unit, ResourceAsk::StoreMemory { key: "k".into(), value: json!([1]) });
    assert_eq!(store(work.unit), ResourceReply::Stored);
    assert_eq!(store(Unit { fence: work.unit.fence + 1, ..work.unit }), ResourceReply::Stale);
    let workflow = u128::from_str_radix(work.workflow.as_deref().unwrap(), 16).unwrap();
    let query = MemoryQuery {
        tenant: Tenant::default(),
        workflow: windlass_store::WorkflowId(workflow),
        key: None,
        prefix: None,
        words: Vec::new(),
        limit: 10,
    };
    let found = rig.reader().memories(&query).unwrap();
    assert_eq!(found.iter().map(|found| found.value.as_str()).collect::<Vec<_>>(), ["[1]"]);
    rig.done(&work, json!({}));
    let refused = store(rig.work().unit);
    assert!(
        matches!(&refused, ResourceReply::Failed(failure) if failure.code == "PERMISSION_DENIED"),
        "a step without a task for it: {refused:?}"
    );
}

#[test]
fn a_log_without_room_ends_with_the_reason_and_is_refused_from_then_on() {
    let (rig, held) = rig();
    let id = rig.start("chain", chain(2), json!({}));
    let work = rig.work();
    assert_eq!(work.no_room, None);
    let log = |work: &windlass_protocol::Work| {
        let line = Line { at: 1, stream: Stream::Out, text: "hello".into(), level: None, data: None };
        Call::Log(Log { unit: work.unit, step: work.step.clone(), attempt: 1, lines: vec![line] })
    };
    let accepted = Reply::Verdict(Verdict::Accepted);
    assert_eq!(rig.send(log(&work)), accepted);
    held.is_full.store(true, Ordering::SeqCst);
    assert_eq!(rig.send(log(&work)), accepted);
    assert!(matches!(rig.send(log(&work)), Reply::Refused(failure) if failure.code == "QUOTA_EXCEEDED"));
    let chunks = rig.reader().logs(id, Position(0), 10).unwrap();
    let texts: Vec<String> =
        chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.lines).into_owned()).collect();
    assert!(texts.len() == 2 && texts[1].contains("what follows is not kept: it is full"), "{texts:?}");
    assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted);
    assert_eq!(rig.work().no_room, Some(NoRoom::Quota("it is full".into())));
    assert_eq!(rig.send(log(&work)), Reply::Verdict(Verdict::Stale), "its work has ended");
}
