//! An execution that the kernel decides, with its decisions as commits.

use crate::commit::{
    Commit, CommitId, Creation, Definition, DefinitionId, Lease, Session, StoredManifest, Target, WorkflowId,
};
use crate::origin::{Origin, Tenant};
use crate::project::project;
use crate::rows::Rows;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::*;
use windlass_retry::{carry_over, plan_retry};

/// A net from its stored form.
#[must_use]
pub fn net(spec: Value) -> Arc<Net> {
    let spec: NetSpec = serde_json::from_value(spec).expect("a spec");
    Arc::new(Net::new(spec).expect("a sound net"))
}

/// `task("a", &[1])`: work for a worker, then step 1.
#[must_use]
pub fn task(name: &str, to: &[u32]) -> Value {
    let arcs: Vec<Value> = to.iter().map(|to| json!({ "to": to })).collect();
    json!({ "name": name, "work": { "task": { "spec": {} } }, "router": { "arcs": arcs } })
}

/// The step with some fields set.
#[must_use]
pub fn with(mut step: Value, fields: Value) -> Value {
    let (Some(step_fields), Value::Object(fields)) = (step.as_object_mut(), fields) else {
        panic!("steps and fields are objects");
    };
    step_fields.extend(fields);
    step
}

/// Two tasks, one after the other, for ever: each step is offered when the one before is done.
#[must_use]
pub fn circle() -> Arc<Net> {
    net(json!({ "steps": [task("there", &[1]), task("back", &[0])], "policy": { "join": "each" } }))
}

/// Some tasks, one after the other.
#[must_use]
pub fn chain(length: u32) -> Arc<Net> {
    let next = |n: u32| if n + 1 < length { vec![n + 1] } else { Vec::new() };
    let steps: Vec<Value> = (0..length).map(|n| task(&format!("s{n}"), &next(n))).collect();
    net(json!({ "steps": steps, "policy": { "join": "all" } }))
}

#[must_use]
pub fn definition(name: &str, source: &str, net: &Arc<Net>) -> Definition {
    Definition {
        tenant: Tenant::default(),
        target: Target::Named(WorkflowId(crc32fast::hash(name.as_bytes()).into())),
        name: name.to_owned(),
        dialect: "playbook".to_owned(),
        source: source.to_owned(),
        workload: json!({ "n": 1 }),
        manifest: StoredManifest::default(),
        net: net.clone(),
        hooks: Vec::new(),
        schedules: Vec::new(),
        at: Millis(5),
        status: None,
        author: None,
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub net: Arc<Net>,
    pub state: Execution<'static>,
    pub definition: Option<DefinitionId>,
    pub now: Millis,
}

impl World {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(net: &Arc<Net>) -> World {
        World { net: net.clone(), state: Execution::default(), definition: None, now: Millis(1_000) }
    }

    /// Created and begun.
    #[must_use]
    pub fn create(net: &Arc<Net>, id: u128) -> (World, Commit) {
        let mut world = World::new(net);
        let commit = world.begin(Create::new(ExecutionId(id), json!({ "order": id as u64 })));
        (world, commit)
    }

    fn origin(&self, parent: Option<ExecutionId>) -> Arc<Origin> {
        Arc::new(Origin { definition: self.definition, parent, ..Origin::default() })
    }

    pub fn begin(&mut self, create: Create) -> Commit {
        let parent = create.parent.as_ref().map(|parent| parent.execution);
        let mut commit = self.give(&Input::Create(Box::new(create)));
        commit.creation = Some(Creation {
            origin: self.origin(parent),
            net: self.net.digest(),
            inputs: self.state.head.inputs.clone(),
            at: self.now,
        });
        commit
    }

    /// A new execution that takes over from an ended one, as one commit (R12).
    #[must_use]
    pub fn fork(&self, journal: &[Record], id: ExecutionId) -> (World, Commit) {
        let values = Values::default();
        let given = Given { now: self.now, random: 0, values: &values };
        let plan = plan_retry(&self.net, journal, &self.net, None).expect("it can be retried");
        let new = NewExecution { id, ..NewExecution::default() };
        let decision = carry_over(&plan, &self.net, &new, &given).expect("it can begin");
        let artifacts = decision.artifacts;
        let records: Vec<Record> = plan.into_records().into_iter().chain(decision.records).collect();
        let state = replay(&self.net, &records).expect("a sound journal");
        let origin = self.origin(Some(self.id()));
        let creation = Creation {
            origin: Arc::new(Origin { retry_of: Some(self.id()), ..(*origin).clone() }),
            net: self.net.digest(),
            inputs: state.head.inputs.clone(),
            at: self.now,
        };
        let rows = project(&self.net, &Changes::whole(&state), &records);
        let world = World { state, ..self.clone() };
        let commit = Commit { creation: Some(creation), artifacts, ..world.commit(0, records, rows) };
        (world, commit)
    }

    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.state.head.id
    }

    /// Open offers.
    #[must_use]
    pub fn open(&self) -> Vec<(RunId, Fence)> {
        let open = |run: RunId, state: &RunState| match state {
            RunState::Offered { fence } => Some((run, *fence)),
            _ => None,
        };
        self.state.runs.iter().filter_map(|(run, step_run)| open(*run, &step_run.state)).collect()
    }

    /// A lease on the first open offer.
    #[must_use]
    pub fn lease(&self, session: u64) -> Lease {
        let (run, fence) = self.open()[0];
        let (execution, session) = (self.id(), Session(session));
        Lease { execution, run, fence, session, claimed_at: self.now, started_at: None }
    }

    /// The first open offer is done.
    pub fn done(&mut self, output: Value) -> Commit {
        let (run, fence) = self.open()[0];
        let mut commit = self.give(&reported(run, fence, WorkResult::Done { output: Arc::new(output) }));
        commit.answered = vec![(run, fence)];
        commit
    }

    pub fn give(&mut self, input: &Input) -> Commit {
        self.try_give(input, &Values::default()).expect("an input that is accepted")
    }

    pub fn try_give(&mut self, input: &Input, values: &Values) -> Result<Commit, Rejected> {
        let expected = self.state.head.version;
        let given = Given { now: self.now, random: expected, values };
        let Decision { records, changes, artifacts } = decide(&self.state, &self.net, input, &given)?;
        self.state.apply(&changes);
        let rows = project(&self.net, &changes, &records);
        Ok(Commit { artifacts, ..self.commit(expected, records, rows) })
    }

    fn commit(&self, expected: u64, records: Vec<Record>, rows: Rows) -> Commit {
        Commit {
            id: CommitId(self.id().0 << 64 | u128::from(expected)),
            execution: self.id(),
            expected,
            creation: None,
            answered: Vec::new(),
            rows,
            records: Arc::new(records),
            artifacts: Vec::new(),
            leases: Vec::new(),
            stops: Vec::new(),
            mail: Vec::new(),
            consumed: Vec::new(),
            audits: Vec::new(),
        }
    }
}

#[must_use]
pub fn reported(run: RunId, fence: Fence, result: WorkResult) -> Input {
    Input::Report(Box::new(Report {
        run,
        fence,
        result,
        patch: Patch::new(),
        times: None,
        metadata: None,
        cursor: None,
    }))
}
