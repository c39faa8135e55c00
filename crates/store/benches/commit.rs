//! Steps of chains through the SQLite store: one commit finishes a step, routes, and offers the next one to a worker,
//! and every batch is synced. `cargo bench -p windlass-store` prints a line per measurement; nothing is asserted.
//! The folder is a new one under `WINDLASS_BENCH_DIR`, else under the system's folder for temporary files.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use windlass_kernel::net::{Join, JoinArc, NetSpec, Policy, Step, Work};
use windlass_kernel::*;
use windlass_store::sqlite::Sqlite;
use windlass_store::{Applied, Commit, CommitId, Creation, Lease, Session, Store, Write, project};

/// Duration of the constant load.
const LOAD: Duration = Duration::from_secs(20);

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    for (name, executions, batch, steps) in [
        ("one at a time, 64 executions", 64, 1, 20_000),
        ("64 a batch, 64 executions", 64, 64, 400_000),
        ("64 a batch, 1,024 executions", 1_024, 64, 400_000),
        ("64 a batch, 20,000 executions", 20_000, 64, 400_000),
        ("512 a batch, 1,024 executions", 1_024, 512, 400_000),
    ] {
        if wanted(name) {
            throughput(name, executions, batch, steps);
        }
    }
    for (name, executions) in [("load of 1,024 executions", 1_024), ("load of 20,000 executions", 20_000)] {
        if wanted(name) {
            load(name, executions);
        }
    }
}

/// A playbook with an endless cycle, so that every step costs the same.
fn circle() -> Net {
    let step = |name: &str, to: u32| {
        let mut step = Step::new(name, Work::task(json!({ "kind": "shell", "run": "true" })));
        step.router.arcs = vec![JoinArc::to(StepId(to))];
        step
    };
    let policy = Policy { join: Join::Each, ..Policy::default() };
    Net::new(NetSpec { steps: vec![step("there", 1), step("back", 0)], policy }).expect("a sound net")
}

struct Chain {
    net: Arc<Net>,
    state: Execution<'static>,
    open: (RunId, Fence),
    output: Arc<Value>,
}

impl Chain {
    fn create(net: &Arc<Net>, id: ExecutionId) -> (Chain, Write) {
        let mut chain = Chain {
            net: net.clone(),
            state: Execution::default(),
            open: (RunId(0), Fence(0)),
            output: Arc::new(json!({ "exit_code": 0, "stdout": "done" })),
        };
        let create = Create::new(id, json!({ "order": 17 }));
        let creation = Creation {
            origin: Arc::default(),
            net: net.digest(),
            inputs: create.inputs.clone(),
            at: Millis(0),
        };
        let mut commit = chain.send(&Input::Create(Box::new(create)), Vec::new());
        commit.execution = id;
        commit.creation = Some(creation);
        (chain, Write::Commit(Box::new(commit)))
    }

    fn step(&mut self) -> Write {
        let (run, fence) = self.open;
        let now = self.state.head.at;
        let times = Some(Times { claimed_at: now, started_at: now });
        let result = WorkResult::Done { output: self.output.clone() };
        let report = Report { run, fence, result, patch: Patch::new(), times, metadata: None, cursor: None };
        Write::Commit(Box::new(self.send(&Input::Report(Box::new(report)), vec![(run, fence)])))
    }

    fn send(&mut self, input: &Input, answered: Vec<(RunId, Fence)>) -> Commit {
        let expected = self.state.head.version;
        let now = Millis(1_800_000_000_000 + i64::try_from(expected).expect("a short history"));
        let given = Given { now, random: 0, values: &Values::default() };
        let Decision { records, changes, artifacts } =
            decide(&self.state, &self.net, input, &given).expect("an accepted input");
        self.state.apply(&changes);
        for record in &records {
            if let Event::Offered { run, fence, .. } = record.event {
                self.open = (run, fence);
            }
        }
        let execution = self.state.head.id;
        let (run, fence) = self.open;
        let session = Session(1);
        let lease = Lease { execution, run, fence, session, claimed_at: now, started_at: Some(now) };
        Commit {
            id: CommitId(execution.0 << 32 | u128::from(expected)),
            execution,
            expected,
            creation: None,
            answered,
            rows: project(&self.net, &changes, &records),
            records: Arc::new(records),
            artifacts,
            leases: vec![lease],
            stops: Vec::new(),
            mail: Vec::new(),
            consumed: Vec::new(),
            audits: Vec::new(),
        }
    }
}

struct Place {
    folder: tempfile::TempDir,
    store: Sqlite,
    chains: Vec<Chain>,
    next: usize,
}

impl Place {
    fn new(executions: u128) -> Place {
        let root = std::env::var_os("WINDLASS_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
        let folder = tempfile::tempdir_in(root).expect("a folder");
        let store = Sqlite::open(&folder.path().join("windlass.db")).expect("a store");
        let mut place = Place { folder, store, chains: Vec::new(), next: 0 };
        let net = Arc::new(circle());
        let ids: Vec<u128> = (0..executions).collect();
        for some in ids.chunks(1_000) {
            let made = some.iter().map(|id| Chain::create(&net, ExecutionId(0x0190_0000 << 96 | *id)));
            let (chains, writes): (Vec<Chain>, Vec<Write>) = made.unzip();
            written(&mut place.store, &writes);
            place.chains.extend(chains);
        }
        place
    }

    /// Writes a batch. Large sets are visited in an order unrelated to the order of their rows on disk.
    fn batch(&mut self, size: usize) -> Vec<Write> {
        let stride = if self.chains.len() > 10_000 { 7_919 } else { 1 };
        let mut writes = Vec::with_capacity(size);
        for _ in 0..size {
            self.next = (self.next + stride) % self.chains.len();
            writes.push(self.chains[self.next].step());
        }
        writes
    }

    /// Bytes of the database and of its log.
    fn size(&self) -> (u64, u64) {
        let length = |name: &str| {
            let path = self.folder.path().join(name);
            path.metadata().map_or(0, |file| file.len())
        };
        (length("windlass.db"), length("windlass.db-wal"))
    }
}

fn written(store: &mut Sqlite, writes: &[Write]) {
    let applied = store.write(writes).expect("a healthy disk");
    assert!(applied.iter().all(|one| matches!(one, Applied::Committed(_))), "a commit was refused");
}

fn throughput(name: &str, executions: u128, size: usize, steps: usize) {
    let mut place = Place::new(executions);
    // Batches are made ahead in portions, so that only the store is measured and memory stays bounded.
    let portion = (20_000 / size).max(1);
    let warm: Vec<Vec<Write>> = (0..portion).map(|_| place.batch(size)).collect();
    warm.iter().for_each(|batch| written(&mut place.store, batch));
    let (mut times, mut busy) = (Vec::new(), 0);
    while times.len() * size < steps {
        let batches: Vec<Vec<Write>> = (0..portion).map(|_| place.batch(size)).collect();
        let before = busy_ns();
        for batch in &batches {
            let begin = Instant::now();
            written(&mut place.store, batch);
            times.push(begin.elapsed());
        }
        busy += busy_ns() - before;
    }
    print_times(name, size, &mut times, None);
    println!("    {:.1} us of CPU a commit", busy as f64 / 1_000.0 / (times.len() * size) as f64);
    let path = place.folder.path().join("windlass.db");
    let before = place.size();
    drop(place.store);
    let file = path.metadata().expect("a database").len();
    let rows = (times.len() + portion) * size;
    println!(
        "    {:.0} bytes a step in the database; the log had {} MiB",
        file as f64 / rows as f64,
        before.1 >> 20
    );
}

/// Batches are made on the other core while the last one is written, for a while.
fn load(name: &str, executions: u128) {
    let mut place = Place::new(executions);
    let (give, take) = sync_channel::<Vec<Write>>(4);
    let mut times = Vec::new();
    let (mut chains, mut next) = (std::mem::take(&mut place.chains), 0);
    let stride = if chains.len() > 10_000 { 7_919 } else { 1 };
    let (begin, mut log) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let mut batch = Vec::with_capacity(64);
                for _ in 0..64 {
                    next = (next + stride) % chains.len();
                    batch.push(chains[next].step());
                }
                if give.send(batch).is_err() {
                    return;
                }
            }
        });
        while begin.elapsed() < LOAD {
            let batch = take.recv().expect("the other thread makes batches");
            let begin = Instant::now();
            written(&mut place.store, &batch);
            times.push(begin.elapsed());
            log = log.max(place.size().1);
        }
        drop(take);
    });
    print_times(name, 64, &mut times, Some(begin.elapsed()));
    println!("    the log grew to {} MiB, the database to {} MiB", log >> 20, place.size().0 >> 20);
}

/// Nanoseconds this thread has been on a CPU: the load of the machine does not change it.
fn busy_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn print_times(name: &str, size: usize, times: &mut [Duration], wall: Option<Duration>) {
    let total = wall.unwrap_or_else(|| times.iter().sum());
    let rate = (times.len() * size) as f64 / total.as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{name}: {rate:.0} commits/s; a batch takes {:.2} ms (p50), {:.2} (p99), {:.2} (p99.9), {:.1} at most",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}
