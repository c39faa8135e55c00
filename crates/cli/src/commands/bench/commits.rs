//! Commits of chains in the form in which the engine makes them, without the engine.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{
    Create, Decision, Event, Execution, ExecutionId, Fence, Given, Input, Millis, Net, Patch, Report, RunId,
    Values, WorkResult, decide,
};
use windlass_store::{Commit, CommitId, Creation, Lease, Session, Write, project};

/// Chains that advance together: each batch has one commit of each.
pub struct Chains {
    net: Arc<Net>,
    lives: Vec<Life>,
    output: Arc<Value>,
    commits: u128,
    at: Millis,
}

struct Life {
    id: ExecutionId,
    state: Execution<'static>,
    open: Option<(RunId, Fence)>,
}

impl Chains {
    /// Creates chains. Their ids are `first` and the numbers after it, which must be free.
    pub fn new(net: Arc<Net>, first: u128, count: usize, at: Millis) -> Chains {
        let life = |id| Life { id: ExecutionId(id), state: Execution::default(), open: None };
        let lives = (first..).take(count).map(life).collect();
        Chains { net, lives, output: Arc::new(json!({ "ok": true })), commits: first << 32, at }
    }

    /// Returns the next commit of every chain; None when they have ended.
    pub fn batch(&mut self) -> anyhow::Result<Option<Vec<Write>>> {
        if self.lives.iter().any(|life| life.state.phase().is_ended()) {
            return Ok(None);
        }
        let mut batch = Vec::with_capacity(self.lives.len());
        for life in &mut self.lives {
            self.commits += 1;
            let commit = life.go_on(&self.net, &self.output, CommitId(self.commits), self.at)?;
            batch.push(Write::Commit(Box::new(commit)));
        }
        Ok(Some(batch))
    }
}

impl Life {
    fn go_on(&mut self, net: &Net, output: &Arc<Value>, id: CommitId, at: Millis) -> anyhow::Result<Commit> {
        let answered = self.open.take();
        let input = match answered {
            None => Input::Create(Box::new(Create::new(self.id, json!({})))),
            Some((run, fence)) => {
                let result = WorkResult::Done { output: output.clone() };
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
        };
        let expected = self.state.head.version;
        let values = Values::default();
        let Decision { records, changes, artifacts } =
            decide(&self.state, net, &input, &Given { now: at, random: 0, values: &values })?;
        self.state.apply(&changes);
        self.open = records.iter().find_map(|record| match &record.event {
            Event::Offered { run, fence, .. } => Some((*run, *fence)),
            _ => None,
        });
        Ok(Commit {
            id,
            execution: self.id,
            expected,
            creation: (expected == 0).then(|| creation(net, at)),
            answered: answered.into_iter().collect(),
            rows: project(net, &changes, &records),
            records: Arc::new(records),
            artifacts,
            leases: self.open.map(|open| lease(self.id, open, at)).into_iter().collect(),
            stops: Vec::new(),
            mail: Vec::new(),
            consumed: Vec::new(),
            audits: Vec::new(),
        })
    }
}

fn creation(net: &Net, at: Millis) -> Creation {
    Creation { origin: Arc::default(), net: net.digest(), inputs: Arc::new(json!({})), at }
}

fn lease(execution: ExecutionId, (run, fence): (RunId, Fence), at: Millis) -> Lease {
    Lease { execution, run, fence, session: Session(1), claimed_at: at, started_at: Some(at) }
}
