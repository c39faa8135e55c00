//! Tests of histories over a real store, while an engine changes it.

use super::Histories;
use crate::database::{Database, DatabaseReader};
use crate::feed::{Audience, Feed, FeedStart};
use crate::host::{new_workflow_id, now};
use crate::loaded::ReadError;
use crate::retention::Pruner;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use windlass_dialects::compile;
use windlass_engine::{Engine, EngineAnswer, Folder, Request, Start, journal};
use windlass_kernel::{Cancel, ExecutionId, Input, Net, Patch, outputs};
use windlass_store::{Definition, Position, Reader, ServerReader as _, StoredManifest, Target, Tenant};
use windlass_views::Message;

/// The execution ends when `go` has been patched often enough.
const GATE: &str = "metadata: {name: gate}\nworkflow:\n- step: g\n  spec: {policy: {admit: {rules: \
    [{when: '{{ ctx.go >= 40 }}', then: {allow: true}}]}}}\n  tool: {kind: noop}\n";
const PATCHES: i64 = 40;

struct Rig {
    engine: Engine,
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Database::open(&Folder::store(folder.path())).unwrap();
        Rig { engine: Engine::start(store, 1).unwrap(), folder }
    }

    fn data(&self) -> &Path {
        self.folder.path()
    }

    fn reader(&self) -> DatabaseReader {
        Database::read_only(&Folder::store(self.data())).unwrap()
    }

    fn start(&self) -> ExecutionId {
        let definition = Definition {
            tenant: Tenant::default(),
            target: Target::Named(new_workflow_id()),
            name: "gate".into(),
            dialect: "playbook".into(),
            source: GATE.into(),
            workload: json!({}),
            manifest: StoredManifest::default(),
            net: Arc::new(compile(GATE).net.unwrap()),
            hooks: Vec::new(),
            schedules: Vec::new(),
            at: now(),
            status: None,
            author: None,
        };
        let Some(EngineAnswer::Defined { id, .. }) =
            self.engine.handle().call(Request::Define(Box::new(definition)))
        else {
            panic!("it is not defined")
        };
        let start = Start::by_hand(id, json!({}), json!({ "go": 0 }));
        let Some(EngineAnswer::Started(id)) = self.engine.handle().call(Request::Start(Box::new(start)))
        else {
            panic!("it is not started")
        };
        self.patch(id, 0);
        id
    }

    fn give(&self, execution: ExecutionId, input: Input) {
        let answer = self.engine.handle().call(Request::Give { execution, input, audit: None });
        assert_eq!(answer, Some(EngineAnswer::Accepted));
    }

    fn patch(&self, id: ExecutionId, go: i64) {
        let patch = Patch::from([("go".to_owned(), Arc::new(json!(go)))]);
        self.give(id, Input::Patch { patch, by: "me".into() });
    }
}

fn view(histories: &Histories, reader: &mut DatabaseReader, id: ExecutionId) -> Value {
    let stored = reader.load(id).unwrap().unwrap();
    json!(histories.view(reader, stored, |loaded| loaded.response()).unwrap())
}

#[test]
fn concurrent_readers_see_what_is_on_disk_and_read_it_once() {
    let rig = Rig::new();
    let (id, histories) = (rig.start(), Histories::default());
    let rows: u64 = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut reader = rig.reader();
                    while view(&histories, &mut reader, id)["status"] != "completed" {}
                    reader.journal_rows_read()
                })
            })
            .collect();
        for go in 1..=PATCHES {
            rig.patch(id, go);
        }
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    let mut reader = rig.reader();
    let journal = journal(&mut reader, id).unwrap();
    let whole = reader.journal_rows_read();
    assert!(whole > PATCHES.unsigned_abs() && rows <= whole, "{rows} rows read of {whole}");
    let mut afresh = view(&Histories::default(), &mut reader, id);
    assert_eq!(view(&histories, &mut reader, id), afresh);
    let net = compile(GATE).net.unwrap();
    assert_eq!(afresh["outputs"].take(), outputs(&net, &journal));
}

#[test]
fn an_execution_deleted_during_a_read_is_reported_as_missing() {
    let rig = Rig::new();
    let (id, mut reader) = (rig.start(), rig.reader());
    rig.give(id, Input::Cancel(Cancel { by: "me".into(), ..Cancel::default() }));
    let stored = reader.load(id).unwrap().unwrap();
    let mut pruning = Pruner::of(rig.data(), rig.engine.handle()).unwrap();
    assert_eq!(pruning.run(now().plus(1)).unwrap().executions, 1);
    assert!(reader.load(id).unwrap().is_none());
    let gone = Histories::default().view(&mut reader, stored, |loaded| loaded.response());
    assert!(matches!(gone, Err(ReadError::Gone(found)) if found == id), "{gone:?}");
}

fn open(histories: &Histories, id: ExecutionId, net: &Arc<Net>, start: FeedStart) -> Feed {
    histories.feeds.open(id, net.clone(), Vec::new(), start, Audience::StreamWithoutLogs)
}

/// Reads a feed until there is nothing more at the moment.
fn messages(feed: &mut Feed, reader: &mut DatabaseReader, histories: &Histories) -> Vec<Message> {
    let mut messages = Vec::new();
    loop {
        let page = feed.read(reader, &histories.feeds).unwrap();
        messages.extend(page.messages);
        if page.over || !page.more {
            return messages;
        }
    }
}

#[test]
fn wfl_20_a_subscriber_that_reconnects_reads_only_the_rows_since() {
    let rig = Rig::new();
    let (id, mut reader, histories) = (rig.start(), rig.reader(), Histories::default());
    let net = Arc::new(compile(GATE).net.unwrap());
    let mut feed = open(&histories, id, &net, FeedStart::After(0));
    let first = messages(&mut feed, &mut reader, &histories);
    let seen = first.iter().map(|message| message.sequence).max().unwrap();
    (1..PATCHES).for_each(|go| rig.patch(id, go));
    assert_eq!(messages(&mut feed, &mut reader, &histories), []);
    histories.feeds.store_checkpoint(&feed);
    rig.patch(id, PATCHES);
    let mut continued = |histories: &Histories| {
        let before = reader.journal_rows_read();
        let mut feed = open(histories, id, &net, FeedStart::After(seen));
        let found = messages(&mut feed, &mut reader, histories);
        (found, reader.journal_rows_read() - before)
    };
    let (found, rows) = continued(&histories);
    let (expected, all_rows) = continued(&Histories::default());
    assert_eq!(found, expected);
    assert!(rows < 10 && all_rows > PATCHES.unsigned_abs(), "{rows} rows read of {all_rows}");
    assert!(!found.is_empty() && found.iter().all(|message| message.sequence > seen), "{found:?}");
}

#[test]
fn a_subscriber_from_now_on_is_sent_later_messages_and_always_the_end() {
    let rig = Rig::new();
    let (id, mut reader, histories) = (rig.start(), rig.reader(), Histories::default());
    let net = Arc::new(compile(GATE).net.unwrap());
    let now = |reader: &mut DatabaseReader| {
        let version = reader.load(id).unwrap().unwrap().state.head.version;
        FeedStart::At { version, logs: Position(0) }
    };
    let all = messages(&mut open(&histories, id, &net, FeedStart::After(0)), &mut reader, &histories);
    assert!(!all.is_empty());
    let mut feed = open(&histories, id, &net, now(&mut reader));
    // A change between the opening and the first read is not missed.
    rig.patch(id, PATCHES);
    while !reader.load(id).unwrap().unwrap().state.head.phase.is_ended() {
        std::thread::yield_now();
    }
    let later = messages(&mut feed, &mut reader, &histories);
    let seen = all.iter().map(|message| message.sequence).max().unwrap();
    assert!(later.iter().all(|message| message.sequence > seen), "{later:?}");
    assert!(later.len() > 1, "{later:?}");
    let end = later.last().unwrap().sequence;
    let mut ended = open(&histories, id, &net, now(&mut reader));
    let found = messages(&mut ended, &mut reader, &histories);
    assert_eq!(found.iter().map(|message| message.sequence).collect::<Vec<_>>(), [end]);
}
