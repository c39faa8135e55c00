//! Random scenarios of every dialect's shape. Small on purpose: most bugs need few steps, and a small
//! scenario is quick to read when it fails.

use crate::rng::Rng;
use crate::scenario::*;

/// Context flags that scenarios use.
pub const FLAGS: usize = 3;

pub fn scenario(rng: &mut Rng) -> Scenario {
    let dialect = *rng.pick(&[Dialect::Plan, Dialect::Playbook, Dialect::Workflow, Dialect::Actions]);
    let mut scenario = blank(dialect, rng);
    let count = rng.between(1, 7) as usize;
    scenario.steps = (0..count).map(|_| step(dialect, rng)).collect();
    match dialect {
        Dialect::Playbook => playbook_arcs(&mut scenario, rng),
        Dialect::Actions if rng.percent(50) => chain(&mut scenario),
        Dialect::Plan | Dialect::Workflow | Dialect::Actions => graph(&mut scenario, rng),
    }
    if dialect == Dialect::Workflow {
        bodies(&mut scenario, rng);
        handles(&mut scenario, rng);
        if rng.percent(30) {
            agents(&mut scenario, rng);
        }
    }
    if dialect == Dialect::Playbook && rng.percent(30) {
        scenario.final_step = Some(rng.index(scenario.steps.len()));
    }
    if dialect == Dialect::Playbook {
        // From a copy, so that a playbook without joins is the one that its seed always made.
        joins(&mut scenario, &mut rng.clone());
    }
    scenario
}

/// Most actions of a saga.
const SAGA_ACTIONS_MAX: u64 = 60;
/// Most predecessors of an action.
const PREDECESSORS_MAX: u64 = 3;

/// Actions with workers, in a list or a graph: large enough that many are in flight when one fails.
pub fn saga(rng: &mut Rng) -> Scenario {
    let mut saga = Scenario { max_parallel: None, ..blank(Dialect::Actions, rng) };
    let count = rng.between(1, SAGA_ACTIONS_MAX) as usize;
    saga.timeout_ms = rng.percent(15).then(|| rng.between(1_000, 60_000));
    saga.steps = (0..count).map(|_| Step { work: Work::Task, ..step(Dialect::Actions, rng) }).collect();
    if rng.percent(25) {
        chain(&mut saga);
        return saga;
    }
    for to in 1..count {
        for _ in 0..rng.below(PREDECESSORS_MAX + 1) {
            let from = rng.index(to);
            if saga.steps[from].arcs.iter().all(|arc| arc.to != to) {
                saga.steps[from].arcs.push(arc(to, When::Always));
            }
        }
    }
    saga
}

fn blank(dialect: Dialect, rng: &mut Rng) -> Scenario {
    let failure = match dialect {
        Dialect::Plan => Failure::Continue,
        Dialect::Actions => Failure::FailFast,
        Dialect::Playbook => *rng.pick(&[Failure::Continue, Failure::FailFast]),
        Dialect::Workflow => *rng.pick(&[Failure::FailFast, Failure::Continue, Failure::Collect]),
    };
    let recovery = match dialect {
        Dialect::Plan => Recovery::RestartExecution,
        Dialect::Actions => Recovery::FailAttempt,
        Dialect::Playbook | Dialect::Workflow => *rng.pick(&[Recovery::ResumeStep, Recovery::FailAttempt]),
    };
    let partial = match (dialect, failure) {
        (Dialect::Workflow, Failure::Continue | Failure::Collect) => true,
        (Dialect::Playbook, Failure::Continue) => rng.percent(40),
        _ => false,
    };
    Scenario {
        dialect,
        steps: Vec::new(),
        failure,
        partial,
        final_step: None,
        final_partial: rng.percent(30),
        final_on_cancel: rng.percent(30),
        no_next_is_error: dialect == Dialect::Playbook && rng.percent(20),
        max_parallel: if dialect == Dialect::Plan {
            Some(2)
        } else {
            rng.percent(40).then(|| rng.between(1, 3) as u32)
        },
        timeout_ms: rng.percent(25).then(|| rng.between(500, 20_000)),
        recovery,
        uploads: dialect == Dialect::Plan,
        gates_complete: dialect == Dialect::Playbook && rng.percent(15),
    }
}

fn step(dialect: Dialect, rng: &mut Rng) -> Step {
    let people = dialect != Dialect::Plan;
    let work = match rng.below(100) {
        0..=59 => Work::Task,
        60..=74 => Work::Noop { sets: rng.percent(40).then(|| (rng.index(FLAGS), rng.percent(80))) },
        75..=79 if people && dialect != Dialect::Actions => Work::Approval(manual(rng)),
        80..=85 if dialect != Dialect::Actions => Work::Delay { ms: rng.between(1, 5_000) },
        86..=93 if people && dialect != Dialect::Actions => Work::Child,
        _ => Work::Task,
    };
    let task = work == Work::Task;
    let retries = dialect != Dialect::Plan && rng.percent(50);
    Step {
        order: rng.below(4) as u32,
        arcs: Vec::new(),
        exclusive: dialect == Dialect::Playbook && rng.percent(60),
        conditional: dialect == Dialect::Workflow && rng.percent(20),
        gate: (dialect == Dialect::Playbook && rng.percent(15)).then(|| gate(rng)),
        condition: matches!(dialect, Dialect::Plan | Dialect::Workflow)
            .then_some(())
            .filter(|()| rng.percent(15))
            .map(|()| *rng.pick(&[When::Flag(0), When::Flag(1), When::Never, When::Always, When::Broken])),
        route_ms: (dialect != Dialect::Actions && rng.percent(8)).then(|| rng.between(500, 8_000)),
        repeat: (task && matches!(dialect, Dialect::Playbook | Dialect::Workflow) && rng.percent(15))
            .then(|| repeat(rng)),
        retry: if retries { retry(rng, 4) } else { Retry { attempts: 1, ..retry(rng, 1) } },
        timeout_ms: rng.percent(20).then(|| rng.between(200, 4_000)),
        manual: (task && people && rng.percent(10)).then(|| manual(rng)),
        hook: (dialect == Dialect::Actions && task && rng.percent(60)).then(|| retry(rng, 2)),
        region: None,
        trigger: false,
        agent: false,
        tool: false,
        join: false,
        work,
    }
}

fn manual(rng: &mut Rng) -> Manual {
    Manual { deadline_ms: rng.percent(40).then(|| rng.between(500, 10_000)) }
}

fn gate(rng: &mut Rng) -> Gate {
    Gate {
        flag: rng.index(FLAGS),
        discard: rng.percent(20),
        deadline_ms: rng.percent(40).then(|| rng.between(500, 10_000)),
    }
}

fn repeat(rng: &mut Rng) -> Loop {
    let kind = match rng.below(3) {
        0 => LoopKind::ForEach(rng.below(6) as u32),
        1 => LoopKind::Count(rng.below(6) as u32),
        _ => LoopKind::Until { flag: rng.index(FLAGS), max: rng.between(1, 4) as u32 },
    };
    let cap = if matches!(kind, LoopKind::Until { .. }) { 1 } else { rng.between(1, 3) as u32 };
    Loop { kind, cap, body: false }
}

fn retry(rng: &mut Rng, attempts: u64) -> Retry {
    Retry {
        attempts: rng.between(1, attempts) as u32,
        backoff: *rng.pick(&[Backoff::Fixed, Backoff::Linear, Backoff::Exponential]),
        initial_ms: rng.between(1, 2_000),
        multiplier: *rng.pick(&[1.0, 1.5, 2.0, 3.0]),
        max_ms: rng.between(500, 6_000),
    }
}

fn arc(to: usize, when: When) -> Arc {
    Arc { to, when, args: None, on_error: false }
}

fn guard(rng: &mut Rng) -> When {
    *rng.pick(&[
        When::Always,
        When::Always,
        When::Always,
        When::Done,
        When::Failed,
        When::Ended,
        When::AtLeast(5),
        When::Flag(0),
        When::Flag(1),
        When::ArgAtLeast(5),
        When::Never,
        When::Broken,
    ])
}

/// Forward arcs with any guard; arcs back only when the worker's number is high, so that cycles die out.
fn playbook_arcs(scenario: &mut Scenario, rng: &mut Rng) {
    let count = scenario.steps.len();
    for from in 0..count {
        let mut arcs = Vec::new();
        for _ in 0..rng.below(4) {
            let to = rng.index(count);
            let when = if to > from { guard(rng) } else { When::AtLeast(9) };
            arcs.push(Arc { args: rng.percent(40).then(|| rng.below(10) as i64), ..arc(to, when) });
        }
        scenario.steps[from].arcs = arcs;
    }
    while !dies_out(scenario) {
        drop_one_back_arc(scenario);
    }
}

/// Results of tasks are numbers from 0 to 10, and an arc back wants at least a nine.
const BACK_ARC_CHANCE: f64 = 2.0 / 11.0;
/// A world has room for some thousand firings. Loops of which this many tokens are expected after this many rounds stay
/// far below that; a loop that multiplies its tokens would never come to rest.
const ROUNDS: usize = 20;
const TOKENS_LEFT_MAX: f64 = 0.01;

/// Whether the tokens of a playbook become fewer, if every arc that leads on is taken.
fn dies_out(scenario: &Scenario) -> bool {
    let mut tokens = vec![0.0; scenario.steps.len()];
    tokens[0] = 1.0;
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; tokens.len()];
        for (from, step) in scenario.steps.iter().enumerate() {
            for arc in &step.arcs {
                next[arc.to] += tokens[from] * if arc.to > from { 1.0 } else { BACK_ARC_CHANCE };
            }
        }
        tokens = next;
    }
    tokens.iter().sum::<f64>() <= TOKENS_LEFT_MAX
}

fn drop_one_back_arc(scenario: &mut Scenario) {
    for (from, step) in scenario.steps.iter_mut().enumerate().rev() {
        if let Some(at) = step.arcs.iter().rposition(|arc| arc.to <= from) {
            step.arcs.remove(at);
            return;
        }
    }
}

/// Turns steps with several incoming arcs into joins in some playbooks, and adds another join now and then.
fn joins(scenario: &mut Scenario, rng: &mut Rng) {
    if !rng.percent(JOINED_PERCENT) {
        return;
    }
    let mut incoming = vec![0; scenario.steps.len()];
    scenario.steps.iter().flat_map(|step| &step.arcs).for_each(|arc| incoming[arc.to] += 1);
    for (step, incoming) in scenario.steps.iter_mut().zip(incoming) {
        step.join = rng.percent(if incoming > 1 { 70 } else { 10 });
    }
}

/// Playbooks that may have join steps.
const JOINED_PERCENT: u64 = 50;

fn chain(scenario: &mut Scenario) {
    for from in 1..scenario.steps.len() {
        scenario.steps[from - 1].arcs = vec![arc(from, When::Always)];
    }
}

fn graph(scenario: &mut Scenario, rng: &mut Rng) {
    let guards = scenario.dialect == Dialect::Workflow;
    for to in 1..scenario.steps.len() {
        for from in 0..to {
            if rng.percent(if to - from == 1 { 70 } else { 25 }) {
                let when = if guards && rng.percent(40) { guard(rng) } else { When::Always };
                scenario.steps[from].arcs.push(arc(to, when));
            }
        }
    }
    if guards && scenario.steps.len() > 1 && rng.percent(50) {
        scenario.steps[0].trigger = true;
    }
}

/// Turns a task into a loop over a body of its own: new steps that only the loop leads into.
fn bodies(scenario: &mut Scenario, rng: &mut Rng) {
    for at in 0..scenario.steps.len() {
        if scenario.steps[at].work == Work::Task && scenario.steps[at].manual.is_none() && rng.percent(20) {
            let nested = rng.percent(25);
            body(scenario, at, nested, rng);
        }
    }
}

fn body(scenario: &mut Scenario, at: usize, nested: bool, rng: &mut Rng) {
    scenario.steps[at].repeat = Some(Loop { body: true, ..repeat(rng) });
    scenario.steps[at].work = Work::Noop { sets: None };
    let first = scenario.steps.len();
    let count = rng.between(1, 3) as usize;
    for number in 0..count {
        let mut member = step(Dialect::Workflow, rng);
        member.region = Some(at);
        member.repeat = None;
        member.condition = member.condition.filter(|_| number > 0);
        scenario.steps.push(member);
    }
    for to in first + 1..first + count {
        for from in first..to {
            if rng.percent(60) {
                let when = guard(rng);
                scenario.steps[from].arcs.push(arc(to, when));
            }
        }
    }
    // The loop leads into every step of the body that nothing else does.
    for to in first..first + count {
        let reached =
            (first..first + count).any(|from| scenario.steps[from].arcs.iter().any(|arc| arc.to == to));
        if !reached {
            scenario.steps[at].arcs.push(arc(to, When::Always));
        }
    }
    if nested && scenario.steps[first].work == Work::Task && scenario.steps[first].manual.is_none() {
        body(scenario, first, false, rng);
    }
}

/// Some arcs leave from error handles.
fn handles(scenario: &mut Scenario, rng: &mut Rng) {
    let regions: Vec<_> = scenario.steps.iter().map(|step| step.region).collect();
    for (at, step) in scenario.steps.iter_mut().enumerate() {
        for arc in &mut step.arcs {
            let into_body = regions[arc.to] == Some(at);
            if !into_body && rng.percent(12) {
                arc.on_error = true;
                arc.when = When::Always;
            }
        }
    }
}

/// One or two tools, and tasks whose workers may call them.
fn agents(scenario: &mut Scenario, rng: &mut Rng) {
    for step in &mut scenario.steps {
        step.agent =
            step.work == Work::Task && step.repeat.is_none() && step.manual.is_none() && rng.percent(60);
    }
    for _ in 0..rng.between(1, 2) {
        let retry = retry(rng, 3);
        let tool = step(Dialect::Workflow, rng);
        scenario.steps.push(Step {
            work: Work::Task,
            condition: None,
            route_ms: None,
            repeat: None,
            manual: None,
            tool: true,
            retry,
            ..tool
        });
    }
}
