//! Bad nets and bad inputs: each is refused with a typed error, changes nothing and never panics.

use crate::drive::*;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;

fn refused(steps: Vec<Step>, policy: Policy) -> Vec<Problem> {
    Net::new(NetSpec { steps, policy }).unwrap_err().problems
}

fn all() -> Policy {
    Policy { join: Join::All, ..Policy::default() }
}

#[test]
fn a_net_reports_all_problems_with_its_names_at_once() {
    let problems = refused(vec![task("a", &[7]), task("a", &[])], all());
    let expected = [
        Problem::DuplicateName { name: "a".into() },
        Problem::UnknownStep { at: "an arc of `a`".into(), id: 7 },
    ];
    assert_eq!(problems, expected);
    assert_eq!(refused(vec![], all()), [Problem::Empty]);
}

#[test]
fn arcs_do_not_cross_the_border_of_a_loops_body() {
    let repeat = || {
        let mut step = noop("loop", &[1]);
        let kind = LoopKind::Count { times: template(json!(1)) };
        step.repeat =
            Some(LoopSpec { kind, iterator: "i".into(), cap: 1, body: Body::Region, break_when: None });
        step
    };
    let mut inside = task("in", &[]);
    inside.region = Some(StepId(0));
    let mut leaves = inside.clone();
    leaves.router.arcs = vec![JoinArc::to(StepId(2))];
    let found = refused(vec![repeat(), leaves, task("out", &[])], all());
    assert_eq!(found, [Problem::RegionCrossed { from: "in".into(), to: "out".into() }]);
    let found = refused(vec![repeat(), inside.clone(), task("out", &[1])], all());
    assert_eq!(found, [Problem::RegionCrossed { from: "out".into(), to: "in".into() }]);
    let mut lonely = repeat();
    lonely.router.arcs.clear();
    assert_eq!(refused(vec![lonely, inside.clone()], all()), [Problem::Unreachable { step: "in".into() }]);
    let found = refused(vec![task("no loop", &[1]), inside.clone()], all());
    assert_eq!(found, [Problem::RegionNotALoop { step: "in".into() }]);
    let found = refused(vec![repeat(), inside], Policy::default());
    assert_eq!(found, [Problem::RegionOfEach { step: "loop".into() }]);
    let mut empty = repeat();
    empty.router.arcs.clear();
    assert_eq!(refused(vec![empty], all()), [Problem::RegionEmpty { step: "loop".into() }]);
}

#[test]
fn bounds_of_a_net_are_checked() {
    let check = |change: &dyn Fn(&mut Step, &mut Policy), expected: &str| {
        let (mut step, mut policy) = (task("a", &[]), all());
        change(&mut step, &mut policy);
        let message = Net::new(NetSpec { steps: vec![step], policy }).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let repeat =
        |cap, kind| Some(LoopSpec { kind, iterator: "i".into(), cap, body: Body::Own, break_when: None });
    let count = || LoopKind::Count { times: template(json!(1)) };
    check(&|step, _| step.retry.attempts_max = 0, "at least one attempt");
    check(&|step, _| step.retry.multiplier = f64::NAN, "finite");
    check(&|step, _| step.retry.jitter = -0.1, "not negative");
    check(&|step, _| step.repeat = repeat(0, count()), "from 1 to 10000");
    check(&|step, _| step.repeat = repeat(10_001, count()), "from 1 to 10000");
    check(
        &|step, _| {
            step.repeat = repeat(2, LoopKind::While { condition: expr("true"), check_first: true, max: 1 })
        },
        "sequential",
    );
    check(&|_, policy| policy.max_parallel = Some(0), "max_parallel");
    check(
        &|step, _| {
            step.compensation = Some(Hook { work: Work::noop(), retry: Retry::default(), timeout_ms: None })
        },
        "must be a task",
    );
}

#[test]
fn steps_for_agents_have_no_arcs_and_are_no_entries() {
    let mut tool = task("tool", &[]);
    tool.on_demand = true;
    assert_eq!(
        refused(vec![task("a", &[1]), tool.clone()], all()),
        [Problem::OnDemandWithArcs { step: "a".into() }]
    );
    let entry = Policy { entry: Some(StepId(0)), ..all() };
    assert_eq!(refused(vec![tool], entry), [Problem::EntryInRegion { step: "tool".into() }]);
}

#[test]
fn an_input_before_creation_or_for_another_net_is_refused() {
    let mut drive = Drive::new(all(), vec![task("a", &[])]);
    assert_eq!(drive.send(Input::Begin), Err(Rejected::NotCreated));
    drive.create(json!({})).unwrap();
    assert_eq!(drive.create(json!({})), Err(Rejected::Exists));
    drive.net = Net::new(NetSpec { steps: vec![task("b", &[])], policy: all() }).unwrap();
    assert_eq!(drive.send(Input::Begin), Err(Rejected::WrongNet));
}

#[test]
fn inputs_with_unknown_ids_are_refused_with_a_typed_error() {
    let mut drive = Drive::started(all(), vec![task("a", &[])]);
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let before = drive.state.clone();
    let report = |run, fence| {
        let result = WorkResult::Stopped;
        Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        }))
    };
    let lost = |unit| Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None });
    let unknown = RunId(run.0 + 1);
    let other = Fence(fence.0 + 1);
    let old = Fence::first(0);
    let next = TokenId::first(1);
    let cases = [
        (report(unknown, fence), Rejected::UnknownRun(unknown)),
        (report(run, other), Rejected::StaleFence { given: other }),
        (report(run, old), Rejected::WrongGeneration { given: 0, current: 1 }),
        (report(run, fence), Rejected::NotWaiting { run, why: "no stop was requested" }),
        (lost(LeaseUnit::Run { run, fence: other }), Rejected::StaleFence { given: other }),
        (
            lost(LeaseUnit::Execution { generation: 1 }),
            Rejected::Malformed("this execution is not leased as a whole"),
        ),
        (
            Input::TimerDue(Timer::Backoff { run }),
            Rejected::NotWaiting { run, why: "this timer does not run" },
        ),
        (Input::TimerDue(Timer::Backoff { run: unknown }), Rejected::UnknownRun(unknown)),
        (Input::TimerDue(Timer::Gate { step: StepId(0), token: next }), Rejected::UnknownToken(next)),
        (
            Input::Patch { patch: Patch::new(), by: String::new() },
            Rejected::Malformed("the patch has no key"),
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(drive.send(input.clone()), Err(expected), "{input:?}");
    }
    assert_eq!(drive.state, before, "nothing changed");
}

fn any_run() -> impl Strategy<Value = RunId> {
    prop_oneof![(0u64..6).prop_map(|n| RunId(RunId::first(1).0 + n)), any::<u64>().prop_map(RunId)]
}

fn any_fence() -> impl Strategy<Value = Fence> {
    prop_oneof![(0u64..8).prop_map(|n| Fence(Fence::first(1).0 + n)), any::<u64>().prop_map(Fence)]
}

fn any_failure() -> impl Strategy<Value = Failure> {
    let codes = prop_oneof![Just("SERVICE_UNAVAILABLE"), Just("VALIDATION_ERROR"), Just("ODD"), Just("")];
    (codes, any::<Option<bool>>(), any::<Option<u64>>()).prop_map(|(code, retryable, retry_after_ms)| {
        Failure { retryable, retry_after_ms, ..Failure::of_code(code, "") }
    })
}

fn any_result() -> impl Strategy<Value = WorkResult> {
    prop_oneof![
        (-1i64..9).prop_map(|n| WorkResult::Done { output: Arc::new(json!({ "n": n, "go": n > 3 })) }),
        any_failure().prop_map(WorkResult::Failed),
        Just(WorkResult::Stopped),
        any::<u64>().prop_map(|delay_ms| WorkResult::Later { delay_ms, cursor: None }),
    ]
}

fn any_timer() -> impl Strategy<Value = Timer> {
    prop_oneof![
        Just(Timer::Start),
        Just(Timer::Deadline),
        any_run().prop_map(|run| Timer::Backoff { run }),
        any_run().prop_map(|run| Timer::Delay { run }),
        any_run().prop_map(|run| Timer::Routing { run }),
        any_run().prop_map(|run| Timer::Manual { run }),
        (any_run(), any_fence()).prop_map(|(run, fence)| Timer::Attempt { run, fence }),
        (0u32..9, any::<u64>())
            .prop_map(|(step, token)| Timer::Gate { step: StepId(step), token: TokenId(token) }),
    ]
}

fn any_patch() -> impl Strategy<Value = Patch> {
    (prop_oneof![Just("open"), Just("n"), Just("")], any::<Option<bool>>())
        .prop_map(|(key, value)| Patch::from([(key.to_owned(), Arc::new(json!(value)))]))
}

fn any_input() -> impl Strategy<Value = Input> {
    let note = prop_oneof![
        Just(ManualOutcome::Succeeded),
        Just(ManualOutcome::Failed),
        Just(ManualOutcome::Cancelled)
    ]
    .prop_map(|outcome| ManualNote { outcome, actor: String::new(), ..ManualNote::default() });
    let ask = prop_oneof![
        (0u32..9).prop_map(|step| AgentAsk::Execute { step: StepId(step), args: None }),
        (0u32..9).prop_map(|step| AgentAsk::Skip { step: StepId(step), reason: String::new() }),
        Just(AgentAsk::Pause { reason: String::new() }),
        any_failure().prop_map(|failure| AgentAsk::Fail { failure }),
    ];
    prop_oneof![
        4 => (any_run(), any_fence(), any_result(), any_patch()).prop_map(|(run, fence, result, patch)| {
            Input::Report(Box::new(Report { run, fence, result, patch, times: None, metadata: None, cursor: None }))
        }),
        1 => (any_run(), any_fence(), any::<bool>()).prop_map(|(run, fence, started)| {
            Input::LeaseLost(LeaseLost { unit: LeaseUnit::Run { run, fence }, loss: Loss::of(started), cursor: None })
        }),
        1 => (0u32..4).prop_map(|generation| {
            Input::LeaseLost(LeaseLost { unit: LeaseUnit::Execution { generation }, loss: Loss::Started, cursor: None })
        }),
        3 => any_timer().prop_map(Input::TimerDue),
        1 => any_run().prop_map(|run| Input::RouteReady { run }),
        1 => (any_run(), any_fence(), note).prop_map(|(run, fence, note)| Input::Complete { run, fence, note: Box::new(note), seen: None }),
        2 => any_patch().prop_map(|patch| Input::Patch { patch, by: String::new() }),
        1 => Just(Input::Hold { by: String::new(), reason: String::new() }),
        1 => Just(Input::Resume { by: String::new() }),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(force, compensate)| {
            Input::Cancel(Cancel { force, compensate, ..Cancel::default() })
        }),
        1 => (any_run(), any_fence(), any::<u128>()).prop_map(|(run, fence, child)| {
            let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(json!(1)), failure: None };
            Input::ChildEnded { run, fence, child: ExecutionId(child), result }
        }),
        1 => (any_run(), any_fence(), any::<bool>()).prop_map(|(run, fence, paused)| {
            Input::ChildPaused { run, fence, child: ExecutionId(1), paused }
        }),
        1 => (any_run(), any_fence(), ask).prop_map(|(run, fence, ask)| Input::Agent { run, fence, call: "c".into(), ask }),
        1 => any::<Option<bool>>().prop_map(|bad| Input::Uploaded { failure: bad.map(|_| failure("X")) }),
        1 => Just(Input::Assign { worker: String::new() }),
        1 => Just(Input::Begin),
        1 => Just(Input::Continue),
        1 => any_failure().prop_map(|failure| Input::StartFailed { failure }),
    ]
}

/// Returns a net that uses many features.
fn rich_net(kind: u8) -> NetSpec {
    let mut gate = task("gate", &[3]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.open")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: Some(50) });
    let mut repeat = task("repeat", &[]);
    let times = LoopKind::Count { times: template(json!("{{ ctx.n | default(3) }}")) };
    repeat.repeat =
        Some(LoopSpec { kind: times, iterator: "i".into(), cap: 2, body: Body::Own, break_when: None });
    repeat.retry = Retry { attempts_max: 3, jitter: 0.5, ..Retry::default() };
    let mut routed = task("routed", &[]);
    routed.wait_for = Some(WaitFor { target: template(json!("x")), timeout_ms: 9 });
    let mut tool = task("tool", &[]);
    tool.on_demand = true;
    let sub = Work::Child { definition: template(json!("d")), inputs: template(json!("{{ steps.first }}")) };
    let mut first = task("first", &[1, 2, 4, 5, 6]);
    first.router.arcs[1].guard = Some(expr("event.payload.go"));
    let mut steps = vec![
        first,
        gate,
        repeat,
        noop("noop", &[]),
        routed,
        step("child", sub, &[]),
        step("ask", Work::Approval { deadline_ms: Some(7), asks: None }, &[]),
        tool,
    ];
    let join = [Join::Each, Join::All, Join::AnyLive][usize::from(kind % 3)];
    let mut policy = Policy { join, timeout_ms: Some(500), max_parallel: Some(2), ..Policy::default() };
    if kind % 2 == 1 {
        policy.failure = FailureMode::FailFast;
        policy.compensate = true;
        let hook = Hook { work: Work::task(json!(1)), retry: Retry::default(), timeout_ms: None };
        steps[0].compensation = Some(hook);
        steps[4].completion = Completion::Manual { deadline_ms: None };
    }
    NetSpec { steps, policy }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Any input is either accepted and replayable, or refused without a change.
    #[test]
    fn nothing_panics_and_a_refusal_changes_nothing(
        kind in 0u8..6,
        inputs in prop::collection::vec((any_input(), 0i64..400, any::<u64>()), 1..40),
    ) {
        let net = Net::new(rich_net(kind)).unwrap();
        let mut drive = Drive::of(net);
        drive.create(json!({})).unwrap();
        for (input, later, random) in inputs {
            drive.now += later - 20;
            drive.random = random;
            let before = drive.state.clone();
            match drive.send(input) {
                Ok(_) => {}
                Err(Rejected::Broken(illegal)) => prop_assert!(false, "{illegal}"),
                Err(_) => prop_assert_eq!(&drive.state, &before),
            }
        }
    }

    /// Any arcs, regions and policies make a Net or a list of problems.
    #[test]
    fn net_new_never_panics(
        arcs in prop::collection::vec((0u32..6, 0u32..7), 0..12),
        regions in prop::collection::vec((0u32..6, 0u32..7), 0..3),
        entry in prop::option::of(0u32..8),
        join in 0usize..3,
    ) {
        let mut steps: Vec<Step> = (0..6).map(|n| task(&format!("s{n}"), &[])).collect();
        for (from, to) in arcs {
            steps[from as usize].router.arcs.push(JoinArc::to(StepId(to)));
        }
        for (step, of) in regions {
            steps[step as usize].region = Some(StepId(of));
            if let Some(of) = steps.get_mut(of as usize) {
                let kind = LoopKind::Count { times: template(json!(2)) };
                of.repeat = Some(LoopSpec { kind, iterator: "i".into(), cap: 1, body: Body::Region, break_when: None });
            }
        }
        let join = [Join::Each, Join::All, Join::AnyLive][join];
        let spec = NetSpec { steps, policy: Policy { join, entry: entry.map(StepId), ..Policy::default() } };
        if let Ok(net) = Net::new(spec) {
            let mut drive = Drive::of(net);
            drive.create(json!({})).unwrap();
        }
    }
}
