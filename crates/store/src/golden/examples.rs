//! Events of every kind, with every field filled once and left out once where it may be.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::*;

const RUN: RunId = RunId(1 << 32 | 5);
const FENCE: Fence = Fence(1 << 32 | 9);
const TOKEN: TokenId = TokenId(2 << 32 | 3);
const LATER: Millis = Millis(1_731_662_400_123);

fn value(value: Value) -> Arc<Value> {
    Arc::new(value)
}

fn failure() -> Failure {
    Failure {
        class: ErrorClass::Transient5xx,
        code: "SERVICE_UNAVAILABLE".to_owned(),
        message: "the other side said \"503\"\nand no more — ü".to_owned(),
        retryable: Some(true),
        retry_after_ms: Some(1_500),
        details: json!({ "status": 503, "share": 0.1 }),
        facts: FailureFacts::default(),
    }
}

fn patch() -> Patch {
    Patch::from([("b".to_owned(), value(json!([1, -2, 0.5]))), ("a".to_owned(), value(json!(null)))])
}

fn create() -> Create {
    Create {
        id: ExecutionId(0x0193_2b1c_7d00_7abc_8def_0123_4567_89ab),
        inputs: value(json!({ "z": 1, "a": { "deep": [true, "text", 1e-7] } })),
        timeout_ms: Some(300_000),
        start: StartWhen::At(LATER),
        parent: Some(Parent { execution: ExecutionId(7), run: RUN, fence: FENCE }),
        depth: 2,
        retry_of: Some(ExecutionId(8)),
        imports: vec![
            Import { step: StepId(0), output: value(json!({ "n": 1 })), emitted: Some(emissions()) },
            Import { step: StepId(1), output: value(json!(null)), emitted: None },
        ],
    }
}

fn emissions() -> Vec<Emission> {
    vec![
        Emission { arc: 0, token: TokenValue::Live(Some(value(json!({ "x": 1 })))) },
        Emission { arc: 1, token: TokenValue::Live(None) },
        Emission { arc: 2, token: TokenValue::Dead },
        Emission { arc: 3, token: TokenValue::Poisoned },
    ]
}

const TIMES: Times = Times { claimed_at: Millis(1_731_662_400_000), started_at: Millis(1_731_662_400_007) };

pub(super) fn records() -> Vec<Record> {
    let events = [life(), tokens(), runs(), ends(), rest(), later()].into_iter().flatten();
    events.zip(0..).map(|(event, n)| Record { at: Millis(LATER.0 + n), event }).collect()
}

fn life() -> Vec<Event> {
    let net = NetDigest(std::array::from_fn(|n| u8::try_from(n * 7).unwrap()));
    let plain = Create { start: StartWhen::Called, ..Create::new(ExecutionId(1), json!({})) };
    vec![
        Event::Created(Box::new(Created { net, create: create() })),
        Event::Created(Box::new(Created { net, create: Create::new(ExecutionId(1), json!({})) })),
        Event::Created(Box::new(Created { net, create: plain })),
        Event::Assigned { worker: "w-1".into(), deadline: Some(LATER) },
        Event::Assigned { worker: "w-2".into(), deadline: None },
        Event::TimeCame,
        Event::Started { deadline: Some(LATER) },
        Event::Started { deadline: None },
        Event::Held { by: "user_1".into(), reason: "a look".into() },
        Event::Released { by: "user_1".into() },
        Event::Paused { reason: PauseReason::Held, remaining_ms: Some(5) },
        Event::Paused { reason: PauseReason::Waiting, remaining_ms: None },
        Event::Resumed { deadline: Some(LATER) },
        Event::Resumed { deadline: None },
        draining(Outcome::Completed, Cause::Quiet, None, false),
        draining(Outcome::Partial, Cause::Timeout, None, true),
        draining(Outcome::Failed, Cause::Failure, Some(failure()), true),
        draining(Outcome::Failed, Cause::Limit, Some(failure()), false),
        draining(Outcome::Cancelled, Cause::Cancel, None, true),
        Event::Cleared(Box::new(Cleared {
            dropped: vec![
                (RUN, Some(FENCE), Gone::Cancelled),
                (RUN.next(), None, Gone::Skipped),
                (RUN.next().next(), None, Gone::Abandoned),
            ],
            tokens: vec![TOKEN, TOKEN.next()],
        })),
        Event::StopAsked { leases: vec![(RUN, FENCE)], children: vec![ExecutionId(3)] },
        Event::Compensating,
        Event::Finalizing,
        Event::Ended { outcome: Outcome::Completed, failure: None },
        Event::Ended { outcome: Outcome::Failed, failure: Some(Box::new(failure())) },
        Event::Restarted { generation: 2, remaining_ms: Some(1_000), started: false },
        Event::Restarted { generation: 3, remaining_ms: None, started: false },
        Event::Continued,
    ]
}

fn draining(outcome: Outcome, cause: Cause, failure: Option<Failure>, compensate: bool) -> Event {
    Event::Draining { outcome, cause, failure: failure.map(Box::new), compensate }
}

fn tokens() -> Vec<Event> {
    let routed = |path: Vec<u32>, emitted, end| Event::Routed {
        run: RUN,
        step: StepId(4),
        path: Path(path),
        emitted,
        end,
    };
    let skipped =
        |reason| Event::Skipped { run: RUN, token: TOKEN, step: StepId(4), path: Path(vec![1]), reason };
    vec![
        routed(vec![0, 3], emissions(), BranchEnd::GoesOn),
        routed(vec![], vec![], BranchEnd::Well),
        routed(vec![], vec![], BranchEnd::Failed),
        routed(vec![], vec![], BranchEnd::DeadEnd),
        Event::Denied { token: TOKEN, deadline: Some(LATER) },
        Event::Denied { token: TOKEN, deadline: None },
        Event::Admitted { tokens: vec![(StepId(1), TOKEN), (StepId(2), TOKEN.next())] },
        Event::Discarded { token: TOKEN },
        skipped(SkipReason::NotTaken),
        skipped(SkipReason::Upstream),
        skipped(SkipReason::Condition),
    ]
}

fn runs() -> Vec<Event> {
    let fired = |role: Role| Event::Fired {
        run: RUN,
        step: StepId(4),
        path: Path(vec![0, 2]),
        token: matches!(role, Role::Routed).then_some(TOKEN),
        args: matches!(role, Role::Routed).then(|| value(json!({ "k": "v" }))),
        role,
    };
    vec![
        fired(Role::Routed),
        fired(Role::Iteration { of: RUN, index: 2 }),
        fired(Role::Final),
        fired(Role::Hook { of: RUN }),
        fired(Role::Tool { agent: RUN, call: "call_1".into() }),
        Event::Waiting { run: RUN, target: value(json!({ "service": "db" })), until: LATER },
        Event::Woken { run: RUN },
        Event::Delayed { run: RUN, until: LATER },
        Event::Offered { run: RUN, fence: FENCE, attempt: 1, reads: vec![(StepId(0), RUN)] },
        Event::Offered { run: RUN, fence: FENCE, attempt: 2, reads: vec![] },
        Event::Lost { run: RUN, fence: FENCE, started: true, cursor: Some(value(json!({ "next": "b" }))) },
        Event::Lost { run: RUN, fence: FENCE, started: false, cursor: None },
        Event::RetryScheduled {
            run: RUN,
            fence: Some(FENCE),
            until: LATER,
            failure: Box::new(failure()),
            reported: true,
            patch: patch(),
            cursor: None,
        },
        Event::RetryScheduled {
            run: RUN,
            fence: None,
            until: LATER,
            failure: Box::new(Failure::of_code("NETWORK_TIMEOUT", "too late")),
            reported: false,
            patch: Patch::new(),
            cursor: None,
        },
        Event::Yielded {
            run: RUN,
            fence: FENCE,
            until: LATER,
            cursor: Some(value(json!({ "next": "c", "count": 3 }))),
            patch: patch(),
        },
        Event::Yielded { run: RUN, fence: FENCE, until: LATER, cursor: None, patch: Patch::new() },
        Event::AwaitingManual {
            run: RUN,
            fence: FENCE,
            answered: Some(FENCE),
            output: value(json!({ "ticket": 4 })),
            patch: patch(),
            deadline: Some(LATER),
            times: Some(TIMES),
        },
        Event::AwaitingManual {
            run: RUN,
            fence: FENCE,
            answered: None,
            output: value(json!(null)),
            patch: Patch::new(),
            deadline: None,
            times: None,
        },
    ]
}

fn ends() -> Vec<Event> {
    let manual = |outcome, notes: Option<&str>| {
        let evidence = notes.iter().map(|_| "sha256:00".to_owned()).collect();
        let note = ManualNote {
            outcome,
            actor: "user_2".into(),
            notes: notes.map(str::to_owned),
            evidence,
            ..ManualNote::default()
        };
        Event::CompletedManually { run: RUN, fence: FENCE, by: Box::new(note) }
    };
    let dropped = |how, fence, reported: Option<WorkResult>| Event::Dropped {
        run: RUN,
        fence,
        how,
        reported: reported.map(Box::new),
    };
    let (definition, inputs) = (value(json!({ "path": "other" })), value(json!({})));
    let child = WorkResult::Child { definition, inputs, cursor: None };
    let later = WorkResult::Later { delay_ms: 9, cursor: Some(value(json!(1))) };
    vec![
        manual(ManualOutcome::Succeeded, Some("looked at it")),
        manual(ManualOutcome::Failed, None),
        manual(ManualOutcome::Cancelled, None),
        Event::Done {
            run: RUN,
            fence: Some(FENCE),
            output: value(json!({ "rows": 3, "share": 0.24324074771567494, "big": u64::MAX })),
            patch: patch(),
            times: Some(TIMES),
            metadata: None,
        },
        Event::Done {
            run: RUN,
            fence: None,
            output: value(json!(null)),
            patch: Patch::new(),
            times: None,
            metadata: None,
        },
        failed(Some(FENCE), true, true, Some(value(json!({ "half": 1 }))), patch(), Some(TIMES)),
        failed(None, false, false, None, Patch::new(), None),
        failed(Some(FENCE), false, true, Some(value(json!(null))), Patch::new(), None),
        dropped(Gone::Skipped, None, None),
        dropped(Gone::Cancelled, Some(FENCE), Some(WorkResult::Stopped)),
        dropped(Gone::Abandoned, Some(FENCE), Some(WorkResult::Failed(failure()))),
        dropped(Gone::Cancelled, Some(FENCE), Some(WorkResult::Done { output: value(json!(1)) })),
        dropped(Gone::Cancelled, Some(FENCE), Some(later)),
        dropped(Gone::Cancelled, Some(FENCE), Some(child)),
    ]
}

fn failed(
    fence: Option<Fence>,
    handled: bool,
    reported: bool,
    output: Option<Arc<Value>>,
    patch: Patch,
    times: Option<Times>,
) -> Event {
    Event::Failed {
        run: RUN,
        fence,
        failure: Box::new(failure()),
        handled,
        reported,
        output,
        partial: false,
        deferred: false,
        patch,
        times,
        metadata: None,
    }
}

/// Fields that came after the first files; at the end, so that no other example moves.
fn later() -> Vec<Event> {
    vec![
        Event::Done {
            run: RUN,
            fence: Some(FENCE),
            output: value(json!("told")),
            patch: Patch::new(),
            times: Some(TIMES),
            metadata: Some(counted()),
        },
        counting(failed(Some(FENCE), false, true, None, Patch::new(), Some(TIMES))),
        Event::IterationEnded {
            run: RUN,
            index: 2,
            failed: false,
            stop: false,
            output: Some(value(json!({ "n": 3 }))),
        },
        Event::ChildPaused { run: RUN, paused: true },
        Event::ChildPaused { run: RUN, paused: false },
        in_part(failed(None, true, false, Some(value(json!({ "failed": 1 }))), Patch::new(), None)),
        in_body(failed(Some(FENCE), false, true, None, Patch::new(), Some(TIMES))),
        Event::Joined {
            step: StepId(4),
            tokens: vec![TOKEN, TOKEN.next()],
            token: TOKEN.next().next(),
            args: Some(value(
                json!({ "x": 1, "arrived": [{ "step": "a", "failed": false, "args": { "x": 1 } }] }),
            )),
        },
        Event::Joined { step: StepId(4), tokens: vec![TOKEN], token: TOKEN.next(), args: None },
        Event::Restarted { generation: 4, remaining_ms: None, started: true },
    ]
}

fn in_part(mut event: Event) -> Event {
    if let Event::Failed { partial, .. } = &mut event {
        *partial = true;
    }
    event
}

fn in_body(mut event: Event) -> Event {
    if let Event::Failed { deferred, failure, .. } = &mut event {
        *deferred = true;
        failure.facts =
            FailureFacts { http_status: Some(503), attempt: Some(2), step: Some("fetch".to_owned()) };
    }
    event
}

fn counted() -> Arc<Value> {
    value(json!({ "tokensUsed": 120, "apiCalls": 2 }))
}

fn counting(mut event: Event) -> Event {
    if let Event::Failed { metadata, .. } = &mut event {
        *metadata = Some(counted());
    }
    event
}

fn rest() -> Vec<Event> {
    let decided = |decision| Event::AgentDecided { run: RUN, call: "call_1".into(), decision };
    let child = |until, delegated| Event::ChildStarted {
        run: RUN,
        fence: FENCE,
        attempt: 1,
        child: ExecutionId(u128::MAX >> 1),
        definition: value(json!({ "name": "child", "version": 2 })),
        inputs: value(json!({ "n": 1 })),
        until,
        delegated,
        continues: None,
    };
    let fork = |inputs, deadline| {
        let (parent, id) = (ExecutionId(5), ExecutionId(6));
        let (taken_over, child_of) = (false, None);
        Event::Forked(Box::new(Fork { parent, id, generation: 2, inputs, deadline, taken_over, child_of }))
    };
    vec![
        Event::LoopStarted { run: RUN, total: Some(2), items: Some(value(json!([1, { "k": 2 }]))) },
        Event::LoopStarted { run: RUN, total: None, items: None },
        Event::IterationStarted { run: RUN, index: 0 },
        Event::IterationEnded { run: RUN, index: 0, failed: false, stop: true, output: None },
        Event::IterationEnded { run: RUN, index: 1, failed: true, stop: false, output: None },
        Event::Patched { patch: patch(), by: "api".into() },
        child(Some(LATER), None),
        child(None, None),
        child(
            None,
            Some(Box::new(Delegated {
                fence: FENCE,
                cursor: Some(value(json!({ "at": "b" }))),
                patch: patch(),
            })),
        ),
        child(None, Some(Box::new(Delegated { fence: FENCE, cursor: None, patch: Patch::new() }))),
        Event::Returned {
            run: RUN,
            fence: FENCE,
            cursor: value(json!({ "child": { "status": "completed" }, "then": null })),
        },
        Event::NotCompensated { runs: vec![RUN, RUN.next()] },
        decided(AgentDecision::Execute {
            step: StepId(3),
            tool: RUN.next(),
            args: Some(value(json!({ "q": 1 }))),
        }),
        decided(AgentDecision::Execute { step: StepId(3), tool: RUN.next(), args: None }),
        decided(AgentDecision::Skip { step: StepId(3), reason: "not needed".into() }),
        decided(AgentDecision::Pause { reason: "ask a person".into() }),
        decided(AgentDecision::Fail { failure: Box::new(failure()) }),
        fork(Some(value(json!({ "other": true }))), Some(LATER)),
        fork(None, None),
    ]
}
