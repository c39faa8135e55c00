//! Memories of workflows.

use super::{ServerSite, entry, reader};
use crate::commit::{Applied, WorkflowId};
use crate::entry::Entry;
use crate::memory::{Memories as _, MemoryQuery, StoredMemory};
use crate::origin::Tenant;
use windlass_kernel::Millis;

fn memory(tenant: &str, workflow: u128, key: &str, value: &str, at: i64) -> StoredMemory {
    let (tenant, workflow) = (Tenant(tenant.into()), WorkflowId(workflow));
    StoredMemory { tenant, workflow, key: key.into(), value: value.into(), at: Millis(at) }
}

pub fn memories_are_found_by_key_prefix_and_words_within_their_workflow<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let all = [
        memory("default", 1, "user:ann", r#"{"likes": "Tea"}"#, 1),
        memory("default", 1, "user:bob", r#"{"likes": "coffee"}"#, 2),
        memory("default", 1, "topic", r#""tea time""#, 3),
        memory("default", 2, "user:ann", r#""another workflow""#, 4),
        memory("tnt_b", 1, "user:ann", r#""another tenant""#, 5),
        memory("default", 1, "user:ann", r#"{"likes": "green TEA"}"#, 6),
    ];
    for memory in all {
        assert_eq!(entry(&mut store, Entry::Remember(Box::new(memory))), Applied::Done);
    }
    drop(store);
    let mut reader = reader(&site.open());
    let mut found = |key: Option<&str>, prefix: Option<&str>, words: &[&str], limit| {
        let query = MemoryQuery {
            tenant: Tenant("default".into()),
            workflow: WorkflowId(1),
            key: key.map(str::to_owned),
            prefix: prefix.map(str::to_owned),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            limit,
        };
        let found = reader.memories(&query).expect("memories");
        found.into_iter().map(|memory| format!("{} {}", memory.key, memory.value)).collect::<Vec<_>>()
    };
    let (ann, bob) = (r#"user:ann {"likes": "green TEA"}"#, r#"user:bob {"likes": "coffee"}"#);
    let topic = r#"topic "tea time""#;
    assert_eq!(found(None, None, &[], 10), [ann, topic, bob], "the newest value of each key");
    assert_eq!(found(Some("user:ann"), None, &[], 10), [ann]);
    assert_eq!(found(None, Some("user:"), &[], 10), [ann, bob]);
    assert_eq!(found(None, None, &["tea"], 10), [ann, topic]);
    assert_eq!(found(None, None, &["TEA", "green"], 10), [ann]);
    assert_eq!(found(None, Some("user:"), &["tea"], 10), [ann]);
    assert_eq!(found(None, None, &[], 1), [ann]);
    assert_eq!(found(None, Some("%"), &[], 10), Vec::<String>::new(), "a prefix is no pattern");
}
