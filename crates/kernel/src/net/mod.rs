//! The Net, which every definition compiles to. It is immutable, checked once and addressed by its digest.

mod check;
mod joins;
mod policy;
mod step;

pub use check::{NetError, Problem};
pub use joins::JOIN_STEPS_MAX;
pub use policy::{
    Affinity, Backoff, DeclaredOutput, EndPolicy, FailureMode, FinalFailure, Finish, Join, Limits, Policy,
    Recovery, Retry, RetryOn, Root, UnknownErrors,
};
pub use step::{
    Admit, AdmitRule, Body, Completion, Hook, JoinArc, LoopKind, LoopSpec, On, OnDeny, PatchEntry, Router,
    RouterMode, Shown, Step, WaitFor, Work,
};

use crate::ids::StepId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::Read;

/// Input of [`Net::new`], which a dialect lowers a definition to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetSpec {
    pub steps: Vec<Step>,
    #[serde(default)]
    pub policy: Policy,
}

/// SHA-256 of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct NetDigest(pub [u8; 32]);

#[derive(Debug)]
pub struct Net {
    spec: NetSpec,
    digest: NetDigest,
    bytes: usize,
    names: BTreeMap<String, StepId>,
    entries: Vec<StepId>,
    /// Number of arcs into each step.
    arcs_in: Vec<u32>,
    /// Position of each arc among the arcs into its target: `slots[step][arc]`.
    slots: Vec<Vec<u32>>,
    /// Steps that are directly in the body of each loop step.
    members: Vec<Vec<StepId>>,
    depths: Vec<u32>,
    /// Steps whose outputs an expression or a step's work reads; the state keeps their newest firing.
    tracked: BTreeSet<StepId>,
    gates: Gates,
    joins: joins::Joins,
}

/// Gates that a change of the context can open (R13).
#[derive(Debug, Default)]
struct Gates {
    by_key: BTreeMap<String, Vec<StepId>>,
    any_key: Vec<StepId>,
}

impl Net {
    /// Checks everything that a running execution relies on, and returns all problems at once.
    pub fn new(spec: NetSpec) -> Result<Net, NetError> {
        check::check(&spec)?;
        let count = spec.steps.len();
        let names = spec.steps.iter().zip(0..).map(|(step, id)| (step.name.clone(), StepId(id))).collect();
        let mut arcs_in = vec![0u32; count];
        let mut slots = Vec::with_capacity(count);
        for step in &spec.steps {
            let numbered = step.router.arcs.iter().map(|arc| {
                let next = &mut arcs_in[arc.to.index()];
                *next += 1;
                *next - 1
            });
            slots.push(numbered.collect());
        }
        let mut members = vec![Vec::new(); count];
        for (step, id) in spec.steps.iter().zip(0..) {
            if let Some(region) = step.region {
                members[region.index()].push(StepId(id));
            }
        }
        let (digest, bytes) = compute_digest(&spec);
        let mut net = Net {
            digest,
            bytes,
            names,
            entries: Vec::new(),
            arcs_in,
            slots,
            members,
            depths: (0..count).map(|id| check::loop_depth(&spec, id)).collect(),
            tracked: BTreeSet::new(),
            gates: Gates::default(),
            joins: joins::Joins::find(&spec),
            spec,
        };
        net.entries = net.find_entries();
        net.tracked = net.find_tracked();
        net.gates = net.find_gates();
        Ok(net)
    }

    #[must_use]
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.spec.policy
    }

    #[must_use]
    pub fn digest(&self) -> NetDigest {
        self.digest
    }

    /// Returns the length of the spec as JSON; the memory of a Net grows with it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[must_use]
    pub fn step(&self, id: StepId) -> &Step {
        &self.spec.steps[id.index()]
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<StepId> {
        self.names.get(name).copied()
    }

    #[must_use]
    pub fn knows(&self, id: StepId) -> bool {
        id.index() < self.spec.steps.len()
    }

    pub fn steps(&self) -> impl Iterator<Item = (StepId, &Step)> {
        (0..).map(StepId).zip(&self.spec.steps)
    }

    #[must_use]
    pub fn entries(&self) -> &[StepId] {
        &self.entries
    }

    #[must_use]
    pub fn arcs_in(&self, id: StepId) -> u32 {
        self.arcs_in[id.index()]
    }

    #[must_use]
    pub fn slot(&self, from: StepId, arc: usize) -> u32 {
        self.slots[from.index()][arc]
    }

    /// Returns the steps of a loop's body, without those of nested bodies.
    #[must_use]
    pub fn members(&self, region: StepId) -> &[StepId] {
        &self.members[region.index()]
    }

    /// Returns the steps of a loop's body that no arc leaves.
    pub fn leaves(&self, region: StepId) -> impl Iterator<Item = StepId> {
        let leads_on = |id: StepId| self.step(id).router.arcs.iter().any(|arc| !self.is_body_arc(id, arc));
        self.members(region).iter().copied().filter(move |id| !leads_on(*id))
    }

    /// Returns whether a person decides the end of this step or of a step in its body.
    #[must_use]
    pub fn asks_people(&self, id: StepId) -> bool {
        let step = self.step(id);
        matches!(step.work, Work::Approval { .. })
            || step.completion != Completion::Auto
            || self.members(id).iter().any(|member| self.asks_people(*member))
    }

    /// Returns the step that people know this one by: the step that an approval precedes, or the step itself.
    #[must_use]
    pub fn shown_as(&self, id: StepId) -> StepId {
        self.step(id).approves.unwrap_or(id)
    }

    /// Returns whether a loop around the step has an arc that handles its failure.
    #[must_use]
    pub fn handles_outside(&self, id: StepId) -> bool {
        let around = std::iter::successors(self.step(id).region, |outer| self.step(*outer).region);
        around.into_iter().any(|outer| self.step(outer).router.arcs.iter().any(|arc| arc.on == On::Error))
    }

    /// Returns the number of loops around the step.
    #[must_use]
    pub fn depth(&self, id: StepId) -> usize {
        self.depths[id.index()] as usize
    }

    #[must_use]
    pub fn is_tracked(&self, id: StepId) -> bool {
        self.tracked.contains(&id)
    }

    /// Returns whether any expression or work reads the output of an earlier step.
    #[must_use]
    pub fn reads_outputs(&self) -> bool {
        !self.tracked.is_empty()
    }

    #[must_use]
    pub fn is_body_arc(&self, from: StepId, arc: &JoinArc) -> bool {
        self.step(arc.to).region == Some(from)
    }

    /// Returns the steps whose admission reads one of these context keys.
    #[must_use]
    pub fn gates_reading<'a>(&self, keys: impl Iterator<Item = &'a str>) -> BTreeSet<StepId> {
        let mut found: BTreeSet<StepId> = self.gates.any_key.iter().copied().collect();
        for key in keys {
            found.extend(self.gates.by_key.get(key).into_iter().flatten());
        }
        found
    }

    /// Returns the steps that fire once for all branches that reach them, in the order of their numbers.
    #[must_use]
    pub fn join_steps(&self) -> &[StepId] {
        &self.joins.steps
    }

    /// Returns the number of a join step.
    #[must_use]
    pub fn join_number(&self, id: StepId) -> Option<usize> {
        self.joins.number(id)
    }

    /// Returns the set of join steps that arcs lead to from a step: bit n is the join step with number n.
    #[must_use]
    pub fn joins_behind(&self, id: StepId) -> u64 {
        self.joins.behind(id)
    }

    /// Returns every step that control can reach from `from`, including `from`.
    #[must_use]
    pub fn descendants(&self, from: StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            for arc in &self.step(id).router.arcs {
                if found.insert(arc.to) {
                    open.push(arc.to);
                }
            }
        }
        found
    }

    /// Returns whether any step is run by agents only.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.spec.steps.iter().any(|step| step.on_demand)
    }

    /// Returns the outermost loop around the step, or the step itself.
    #[must_use]
    pub fn outermost(&self, id: StepId) -> StepId {
        std::iter::successors(Some(id), |id| self.step(*id).region).last().unwrap_or(id)
    }

    fn find_entries(&self) -> Vec<StepId> {
        if self.spec.policy.join == Join::Each {
            return vec![self.spec.policy.entry.unwrap_or(StepId(0))];
        }
        let starts = |id: &StepId| {
            let step = self.step(*id);
            self.arcs_in(*id) == 0 && !step.on_demand && step.region.is_none()
        };
        (0..).map(StepId).take(self.spec.steps.len()).filter(starts).collect()
    }

    fn find_tracked(&self) -> BTreeSet<StepId> {
        // The summary for the final step refers to every result.
        if matches!(self.spec.policy.finish, Finish::Step(_)) {
            return self.names.values().copied().collect();
        }
        let outputs = self.spec.policy.outputs.iter().map(|output| output.step);
        let mut tracked: BTreeSet<StepId> = outputs.collect();
        for step in &self.spec.steps {
            if tracked.len() == self.spec.steps.len() {
                return tracked;
            }
            tracked.extend(step.reads.iter().copied());
            step.each_read(&mut |read| tracked.extend(self.steps_read(read)));
        }
        for (id, _) in self.steps().filter(|(_, step)| step.collect) {
            tracked.extend(self.leaves(id));
        }
        tracked
    }

    /// Returns the steps that a name in an expression can mean: `steps.NAME` or the bare name.
    fn steps_read(&self, read: &Read) -> Vec<StepId> {
        let of_steps = read.root == "steps" || self.policy().names.get(&read.root) == Some(&Root::Outputs);
        match (of_steps, &read.key) {
            (true, Some(key)) => self.find(key).into_iter().collect(),
            (true, None) => self.names.values().copied().collect(),
            (false, _) => self.find(&read.root).into_iter().collect(),
        }
    }

    fn find_gates(&self) -> Gates {
        let mut gates = Gates::default();
        for (id, step) in self.steps() {
            let reads = step.admit.iter().flat_map(Admit::reads);
            let mut keys = BTreeSet::new();
            let mut any = false;
            for read in reads {
                match (read.root.as_str(), &read.key) {
                    ("ctx", Some(key)) => {
                        keys.insert(key.clone());
                    }
                    ("ctx", None) => any = true,
                    // A bare name can also be a context key.
                    (root, _) => {
                        keys.insert(root.to_owned());
                    }
                }
            }
            if any {
                gates.any_key.push(id);
            }
            for key in keys {
                gates.by_key.entry(key).or_default().push(id);
            }
        }
        gates
    }
}

fn compute_digest(spec: &NetSpec) -> (NetDigest, usize) {
    // Keys are strings and numbers were checked to be finite, so serialising a spec cannot fail.
    let bytes = serde_json::to_vec(spec).expect("a spec is plain data");
    (NetDigest(Sha256::digest(&bytes).into()), bytes.len())
}
