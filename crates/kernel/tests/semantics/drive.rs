//! Drives one execution through the kernel: it addresses steps by name, loads values on demand, and checks every record
//! against a replay of the journal so far.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_expr::{Expr, Template};
use windlass_kernel::net::{JoinArc, NetSpec, Policy, Step, Work};
use windlass_kernel::*;
use windlass_retry::{RetryPoint, carry_over, plan_retry};

pub struct Drive {
    pub net: Net,
    pub state: Execution<'static>,
    pub journal: Vec<Record>,
    pub now: i64,
    pub random: u64,
    /// Artifacts that the journal refers to, as a store would keep them.
    pub artifacts: BTreeMap<String, Vec<u8>>,
}

pub fn expr(source: &str) -> Expr {
    Expr::compile(source).unwrap()
}

pub fn template(source: Value) -> Template {
    Template::compile(&source).unwrap()
}

/// Creates a task: `task("a", &[1, 2])` is named a and has arcs to steps 1 and 2.
pub fn task(name: &str, to: &[u32]) -> Step {
    step(name, Work::task(json!({ "kind": "shell" })), to)
}

pub fn noop(name: &str, to: &[u32]) -> Step {
    step(name, Work::noop(), to)
}

pub fn step(name: &str, work: Work, to: &[u32]) -> Step {
    let mut step = Step::new(name, work);
    step.router.arcs = to.iter().map(|to| JoinArc::to(StepId(*to))).collect();
    step
}

pub fn arc(to: u32, when: &str) -> JoinArc {
    JoinArc { guard: (!when.is_empty()).then(|| expr(when)), ..JoinArc::to(StepId(to)) }
}

pub fn failure(code: &str) -> Failure {
    Failure::of_code(code, format!("it said {code}"))
}

impl Drive {
    pub fn new(policy: Policy, steps: Vec<Step>) -> Drive {
        let net = Net::new(NetSpec { steps, policy }).unwrap();
        Drive::of(net)
    }

    /// Creates a drive without any event.
    pub fn of(net: Net) -> Drive {
        Drive::at(net, Execution::default(), Vec::new(), 0)
    }

    /// Continues after the end of a journal.
    pub fn at(net: Net, state: Execution<'static>, journal: Vec<Record>, now: i64) -> Drive {
        Drive { net, state, journal, now, random: 0, artifacts: BTreeMap::new() }
    }

    /// Creates and starts an execution without inputs.
    pub fn started(policy: Policy, steps: Vec<Step>) -> Drive {
        let mut drive = Drive::new(policy, steps);
        drive.create(json!({})).unwrap();
        drive
    }

    pub fn create(&mut self, inputs: Value) -> Result<String, Rejected> {
        self.send(Input::Create(Box::new(Create::new(ExecutionId(7), inputs))))
    }

    /// Sends an input, loads the values that the decision needs, applies the records, and returns a summary of them.
    pub fn send(&mut self, input: Input) -> Result<String, Rejected> {
        let mut values = Values::default();
        let mut asked = Vec::new();
        let decision = loop {
            let given = Given { now: Millis(self.now), random: self.random, values: &values };
            match decide(&self.state, &self.net, &input, &given) {
                Err(Rejected::Needs(needs)) => {
                    assert!(!asked.contains(&needs), "{needs:?} are requested twice");
                    values.load(&self.journal, &needs);
                    values.artifacts.extend(needs.iter().filter_map(|need| self.artifact(need)));
                    asked.push(needs);
                }
                other => break other?,
            }
        };
        self.artifacts.extend(decision.artifacts.into_iter().map(|kept| (kept.key, kept.bytes)));
        let before = self.state.clone();
        let summary = self.fold(decision.records);
        let mut applied = before;
        applied.apply(&decision.changes);
        assert_eq!(applied, self.state, "the changes differ from the records");
        assert_eq!(
            replay(&self.net, &self.journal).unwrap(),
            self.state,
            "a replay leads to another state (K1)"
        );
        Ok(summary)
    }

    /// Retries the ended execution under its own net: the new execution, and a summary of its own first records.
    pub fn retry(&self, from: Option<RetryPoint>) -> Result<(Drive, String), Rejected> {
        let net = Net::new(self.net.spec().clone()).unwrap();
        self.retry_under(net, from)
    }

    /// Retries the ended execution under another net.
    pub fn retry_under(&self, net: Net, from: Option<RetryPoint>) -> Result<(Drive, String), Rejected> {
        let plan = plan_retry(&self.net, &self.journal, &net, from)?;
        let mut values = Values::default();
        let new = NewExecution { id: ExecutionId(8), ..NewExecution::default() };
        let decision = loop {
            let given = Given { now: Millis(self.now), random: self.random, values: &values };
            match carry_over(&plan, &net, &new, &given) {
                Err(Rejected::Needs(needs)) => values.load(plan.records(), &needs),
                other => break other?,
            }
        };
        let state = replay(&net, plan.records()).unwrap();
        let mut again = Drive::at(net, state, plan.into_records(), self.now);
        again.artifacts = self.artifacts.clone();
        let summary = again.fold(decision.records);
        let mut whole = Execution::default();
        whole.apply(&decision.changes);
        assert_eq!(whole, again.state, "the changes are not the whole state");
        Ok((again, summary))
    }

    /// Returns the labels of the firings that a retry takes over.
    pub fn kept(&self) -> Vec<String> {
        let plan = plan_retry(&self.net, &self.journal, &self.net, None).unwrap();
        plan.imports.iter().map(|kept| self.label(kept.step, &kept.path)).collect()
    }

    fn fold(&mut self, records: Vec<Record>) -> String {
        let mut summary = Vec::new();
        for record in records {
            summary.extend(self.summarize(&record.event));
            evolve(&mut self.state, &self.net, &record).unwrap();
            self.journal.push(record);
        }
        summary.join("; ")
    }

    fn artifact(&self, need: &Need) -> Option<(String, Option<Arc<Value>>)> {
        let Need::Artifact(key) = need else { return None };
        let value = self.artifacts.get(key).and_then(|bytes| serde_json::from_slice(bytes).ok());
        Some((key.clone(), value.map(Arc::new)))
    }

    /// Describes one event briefly; returns `None` for events that no test looks at.
    fn summarize(&self, event: &Event) -> Option<String> {
        let of = |run: &RunId| self.state.run(*run).map_or("?".into(), |run| self.label(run.step, &run.path));
        Some(match event {
            Event::Offered { run, attempt, .. } if *attempt > 1 => format!("offer {} #{attempt}", of(run)),
            Event::Offered { run, .. } => format!("offer {}", of(run)),
            Event::Skipped { step, path, reason, .. } => {
                format!("skip {} ({reason:?})", self.label(*step, path))
            }
            Event::RetryScheduled { run, until, .. } => format!("retry {} at {}", of(run), until.0),
            Event::Waiting { run, .. } => format!("wait {}", of(run)),
            Event::Delayed { run, until } => format!("sleep {} until {}", of(run), until.0),
            Event::AwaitingManual { run, .. } => format!("ask {}", of(run)),
            Event::Failed { run, failure, handled, .. } => {
                format!("{} failed{} ({})", of(run), if *handled { ", handled" } else { "" }, failure.code)
            }
            Event::Denied { .. } => "deny".into(),
            Event::Admitted { tokens } => format!("admit {}", tokens.len()),
            Event::Discarded { .. } => "discard".into(),
            Event::Joined { step, tokens, .. } => {
                format!("join {} of {}", self.net.step(*step).name, tokens.len())
            }
            Event::ChildStarted { run, attempt, .. } => format!("child of {} #{attempt}", of(run)),
            Event::StopAsked { leases, children } => format!("stop {}+{}", leases.len(), children.len()),
            Event::Cleared(cleared) => format!("clear {}+{}", cleared.dropped.len(), cleared.tokens.len()),
            Event::Fired { role: Role::Hook { .. }, step, .. } => {
                format!("undo {}", self.net.step(*step).name)
            }
            Event::Fired { role: Role::Final, .. } => "final".into(),
            Event::Paused { .. } => "paused".into(),
            Event::Resumed { .. } => "resumed".into(),
            Event::Restarted { generation, .. } => format!("generation {generation}"),
            Event::Continued => "continued".into(),
            Event::LoopStarted { total, .. } => format!("loop {total:?}"),
            Event::Dropped { run, how, .. } => format!("drop {} ({how:?})", of(run)),
            Event::Ended { outcome, .. } => format!("{outcome:?}").to_lowercase(),
            _ => return None,
        })
    }

    fn label(&self, step: StepId, path: &Path) -> String {
        let name = &self.net.step(step).name;
        let path: Vec<String> = path.0.iter().map(u32::to_string).collect();
        if path.is_empty() { name.clone() } else { format!("{name}[{}]", path.join(",")) }
    }

    /// Returns the newest live firing with this label: `a` or `a[0,1]`.
    pub fn firing(&self, label: &str) -> RunId {
        let found = self.state.runs.iter().filter(|(_, run)| self.label(run.step, &run.path) == label);
        *found.last().unwrap_or_else(|| panic!("{label} is not live")).0
    }

    pub fn fence(&self, label: &str) -> Fence {
        self.state.run(self.firing(label)).unwrap().fence.unwrap()
    }

    pub fn report(&mut self, label: &str, result: WorkResult) -> Result<String, Rejected> {
        let (run, fence) = (self.firing(label), self.fence(label));
        self.send(Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        })))
    }

    pub fn done(&mut self, label: &str) -> String {
        self.done_with(label, json!({}))
    }

    pub fn done_with(&mut self, label: &str, output: Value) -> String {
        self.report(label, WorkResult::Done { output: Arc::new(output) }).unwrap()
    }

    pub fn fail(&mut self, label: &str, code: &str) -> String {
        self.report(label, WorkResult::Failed(failure(code))).unwrap()
    }

    pub fn patch(&mut self, key: &str, value: Value) -> Result<String, Rejected> {
        let patch = Patch::from([(key.to_owned(), Arc::new(value))]);
        self.send(Input::Patch { patch, by: "test".into() })
    }

    pub fn cancel(&mut self, cancel: Cancel) -> Result<String, Rejected> {
        self.send(Input::Cancel(cancel))
    }

    pub fn lose(&mut self, label: &str, started: bool) -> Result<String, Rejected> {
        let unit = LeaseUnit::Run { run: self.firing(label), fence: self.fence(label) };
        self.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::of(started), cursor: None }))
    }

    /// Advances the time to the next timer and delivers it.
    pub fn ring(&mut self) -> Result<String, Rejected> {
        let (timer, due) =
            self.state.timers().into_iter().min_by_key(|(_, due)| *due).expect("no timer runs");
        self.now = self.now.max(due.0);
        self.send(Input::TimerDue(timer))
    }
}
