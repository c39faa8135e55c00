//! Benchmark of the kernel. One transition is one `decide` with its changes applied.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_expr::Template;
use windlass_kernel::net::{Body, Join, JoinArc, LoopKind, LoopSpec, NetSpec, Policy, Step, Work};
use windlass_kernel::*;

fn task(number: u32, to: Option<u32>) -> Step {
    let mut step = Step::new(format!("s{number}"), Work::task(json!({ "kind": "noop" })));
    step.router.arcs = to.map(|to| JoinArc::to(StepId(to))).into_iter().collect();
    step
}

fn net(steps: Vec<Step>, join: Join) -> Net {
    Net::new(NetSpec { steps, policy: Policy { join, ..Policy::default() } }).expect("a sound net")
}

fn chain(length: u32) -> Net {
    net((0..length).map(|n| task(n, (n + 1 < length).then_some(n + 1))).collect(), Join::All)
}

fn fan(width: u32) -> Net {
    net((0..width).map(|n| task(n, Some(width))).chain([task(width, None)]).collect(), Join::All)
}

fn repeat(times: u32) -> Net {
    let mut step = task(0, None);
    let items = Template::compile(&Value::Array((0..times).map(Value::from).collect())).expect("a list");
    let kind = LoopKind::ForEach { items };
    step.repeat = Some(LoopSpec { kind, iterator: "item".into(), cap: 1, body: Body::Own, break_when: None });
    net(vec![step], Join::Each)
}

struct World {
    net: Net,
    state: Execution<'static>,
    open: Vec<(RunId, Fence)>,
    output: Arc<Value>,
    values: Values,
}

impl World {
    fn start(net: Net) -> World {
        let output = Arc::new(json!({ "ok": true }));
        let mut world =
            World { net, state: Execution::default(), open: Vec::new(), output, values: Values::default() };
        world.send(&Input::Create(Box::new(Create::new(ExecutionId(1), json!({})))));
        world
    }

    fn send(&mut self, input: &Input) {
        let given = Given { now: Millis(0), random: 0, values: &self.values };
        let Decision { records, changes, .. } =
            decide(&self.state, &self.net, input, &given).expect("an accepted input");
        for record in &records {
            if let Event::Offered { run, fence, .. } = record.event {
                self.open.push((run, fence));
            }
        }
        self.state.apply(&changes);
        if matches!(records.last().map(|record| &record.event), Some(Event::Continued)) {
            self.send(&Input::Continue);
        }
    }

    /// Reports one open step-run as done.
    fn step(&mut self) -> bool {
        let Some((run, fence)) = self.open.pop() else { return false };
        let result = WorkResult::Done { output: self.output.clone() };
        self.send(&Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        })));
        true
    }

    fn finish(mut self) -> Execution<'static> {
        while self.step() {}
        assert_eq!(self.state.phase(), Phase::Ended(Outcome::Completed));
        self.state
    }
}

fn whole(c: &mut Criterion, name: &str, transitions: u64, make: impl Fn() -> Net) {
    let mut group = c.benchmark_group("transitions");
    group.throughput(Throughput::Elements(transitions));
    group.bench_function(name, |b| {
        b.iter_batched(|| World::start(make()), World::finish, BatchSize::LargeInput);
    });
    group.finish();
}

/// Measures the same number of transitions at the start and at the end of a long history.
fn first_and_last(c: &mut Criterion, name: &str, total: u64, part: u64, make: impl Fn() -> Net) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(part));
    for (label, skip) in [("first", 0), ("last", total - part)] {
        let ready = || {
            let mut world = World::start(make());
            (0..skip).for_each(|_| assert!(world.step()));
            world
        };
        let run = |mut world: World| {
            (0..part).for_each(|_| assert!(world.step()));
            world
        };
        group.bench_function(label, |b| b.iter_batched(ready, run, BatchSize::LargeInput));
    }
    group.finish();
}

fn benches(c: &mut Criterion) {
    whole(c, "chain of 10", 10, || chain(10));
    whole(c, "chain of 1000", 1_000, || chain(1_000));
    whole(c, "join of 1000", 1_001, || fan(1_000));
    whole(c, "loop of 10000", 10_000, || repeat(10_000));
    first_and_last(c, "chain of 5000, 500 steps", 5_000, 500, || chain(5_000));
    first_and_last(c, "loop of 10000, 500 iterations", 10_000, 500, || repeat(10_000));
}

criterion_group!(kernel, benches);
criterion_main!(kernel);
