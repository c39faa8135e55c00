//! Checks of requests by workers. A worker may read only what the stored definition of its unit names, never what its
//! request claims: a worker outside of this process may be hostile, and one of this process may have a defect.

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::dispatch::parts;
use crate::resources::{RequestingUnit, ResourceRequest};
use crate::wake::{Effect, EngineAnswer, GroupReply};
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::net::Work;
use windlass_kernel::{Execution, ExecutionId};
use windlass_protocol as protocol;
use windlass_protocol::{
    AgentAnswer, CHILD_KIND, Failure, Outcome, Pipeline, ResourceAsk, ResourceReply, Tool, codes,
};
use windlass_store::{Audit, Entry, StoredMemory, WHOLE, Write};

/// Fields of a task that name the definition of a sub-execution.
const NAMES_OF_CHILDREN: [&str; 3] = ["path", "catalog_id", "version"];

impl<R> Lane<R> {
    /// Serves a resource to the session that holds the unit, for the tenant of its execution.
    pub(super) fn serve_resource(&mut self, call: protocol::ResourceCall, is_remote: bool, reply: R) {
        if !self.sessions.is_held(call.unit) {
            return self.answer(reply, EngineAnswer::resource(ResourceReply::Stale));
        }
        let (execution, ..) = parts(call.unit);
        if self.executions.get(execution).is_some() || !depends_on_definition(&call.ask) {
            return self.serve_held(call, is_remote, reply);
        }
        let what = PendingKind::Asked { call: Box::new(call), is_remote };
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    /// Serves a resource to a unit whose execution is in memory, if the resource depends on it.
    pub(super) fn serve_held(&mut self, call: protocol::ResourceCall, is_remote: bool, reply: R) {
        let protocol::ResourceCall { unit, ask } = call;
        let Some(tenant) = self.sessions.tenant_of(unit) else {
            return self.answer(reply, EngineAnswer::resource(ResourceReply::Stale));
        };
        let asker = self.requesting_unit(unit, is_remote);
        let execution = asker.execution;
        let origin = self.executions.get(execution).map(|live| live.origin.clone());
        let workflow = origin.as_ref().and_then(|origin| origin.workflow);
        let is_bound = origin.is_some_and(|origin| origin.options.runner.is_some());
        let uses_memory = || asker.tools().any(|tool| tool.row().uses_memory);
        match (ask, workflow) {
            (ResourceAsk::StoreMemory { .. } | ResourceAsk::SearchMemory(_), _) if !uses_memory() => {
                let message = "the step has no task that uses the memory of its workflow";
                self.answer(reply, EngineAnswer::resource(ResourceReply::Failed(denied(message.to_owned()))));
            }
            (ResourceAsk::StoreMemory { key, value }, Some(workflow)) => {
                let (value, at) = (value.to_string(), self.now.wall);
                let memory = StoredMemory { tenant, workflow, key, value, at };
                self.open.write(
                    Write::Entry(Box::new(Entry::Remember(Box::new(memory)))),
                    WriteFollowUp::Stored(reply),
                );
            }
            (ResourceAsk::PutArtifact { key, body }, workflow) if is_bound => {
                let artifacts = vec![key.clone()];
                let ask = ResourceAsk::PutArtifact { key, body };
                let request = Box::new(ResourceRequest { tenant, workflow, unit: asker, ask });
                // The row is on disk before a report can refer to the artifact.
                self.own_artifacts(execution, artifacts, WriteFollowUp::Serve(request, reply));
            }
            (ask, workflow) => {
                self.effects
                    .push(Effect::Serve(ResourceRequest { tenant, workflow, unit: asker, ask }, reply));
            }
        }
    }

    /// Adds artifacts to those that workers of the execution may fetch.
    pub(super) fn own_artifacts(
        &mut self,
        execution: ExecutionId,
        artifacts: Vec<String>,
        then: WriteFollowUp<R>,
    ) {
        let owned = Entry::ArtifactsOwned { execution, artifacts };
        self.open.write(Write::Entry(Box::new(owned)), then);
    }

    /// Returns what is stored about a unit. Nothing is known about one that is not alive any more.
    fn requesting_unit(&self, unit: protocol::Unit, is_remote: bool) -> RequestingUnit {
        let (execution, run, _) = parts(unit);
        let is_whole = run == WHOLE;
        let mut asker = RequestingUnit { execution, is_remote, is_whole, ..RequestingUnit::default() };
        let Some(live) = self.executions.get(execution) else { return asker };
        asker.inputs = live.state.head.inputs.clone();
        asker.inputs_of_worker = live.origin.has_inputs_of_worker();
        // The calls of a group are rendered in this process, with results of workers that the execution is bound to.
        asker.is_remote |= live.origin.options.runner.is_some();
        if let Some(step_run) = live.state.run(run) {
            let read = || step_run.reads.iter().map(|(step, _)| &live.net.step(*step).work);
            asker.spec = spec_of(Execution::work_of(&live.net, step_run)).cloned();
            asker.reads = read().filter_map(spec_of).cloned().collect();
            asker.reads_children = read().any(|work| matches!(work, Work::Child { .. }));
        }
        asker
    }

    /// Makes a call of a worker outside of this process that the definition of its unit decides on, as soon as its execution
    /// is in memory. `audit` is written if the call is refused.
    pub(super) fn make_checked(&mut self, call: CheckedCall, audit: Option<Box<Audit>>, reply: R) {
        let (execution, ..) = parts(call.unit());
        if self.executions.get(execution).is_some() {
            return self.make_held(call, audit, reply);
        }
        let what = PendingKind::Relayed(Box::new(call));
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit });
    }

    /// Makes a call for a unit whose execution is in memory.
    pub(super) fn make_held(&mut self, call: CheckedCall, audit: Option<Box<Audit>>, reply: R) {
        let asker = self.requesting_unit(call.unit(), true);
        match call {
            CheckedCall::Agent(call) if asker.tools().any(|tool| tool == Tool::AiAgent) => {
                self.agent(call, reply)
            }
            CheckedCall::Agent(_) => {
                let why = "the step has no task that makes decisions of an agent".to_owned();
                let refused = protocol::Reply::Agent(Box::new(AgentAnswer::Refused { why }));
                self.answer(reply, EngineAnswer::Group(GroupReply::Denied(Box::new(refused))));
            }
            CheckedCall::Report(mut report) => {
                if let Outcome::Child { definition, .. } = &report.outcome
                    && let Err(failure) = check_child(asker.spec.as_deref(), definition)
                {
                    report.outcome = Outcome::Failed(*failure);
                    // A unit that has ended has no definition: its report changes nothing.
                    if let Some(audit) = audit.filter(|_| asker.spec.is_some()) {
                        self.open.write(Write::Entry(Box::new(Entry::Audit(audit))), WriteFollowUp::Nothing);
                    }
                }
                self.report(report, reply);
            }
        }
    }

    /// Returns the lines of a log under the name of the step that wrote them.
    pub(super) fn with_own_step(&self, mut log: protocol::Log) -> protocol::Log {
        let (execution, run, _) = parts(log.unit);
        let live = self.executions.get(execution);
        if let Some((live, step_run)) = live.and_then(|live| Some((live, live.state.run(run)?))) {
            log.step.clone_from(&live.net.step(step_run.step).name);
        }
        log
    }
}

/// A call that the stored definition of its unit decides on.
#[derive(Debug)]
pub(super) enum CheckedCall {
    Agent(protocol::AgentCall),
    /// The report of a step that starts an execution becomes a failure if its definition does not name the one to start.
    Report(protocol::Report),
}

impl CheckedCall {
    fn unit(&self) -> protocol::Unit {
        match self {
            CheckedCall::Agent(call) => call.unit,
            CheckedCall::Report(report) => report.unit,
        }
    }

    /// Returns the answer to a call for an execution that is not worked on.
    pub(super) fn stale(&self) -> EngineAnswer {
        match self {
            CheckedCall::Agent(_) => EngineAnswer::agent(AgentAnswer::Stale),
            CheckedCall::Report(_) => EngineAnswer::verdict(protocol::Verdict::Stale),
        }
    }
}

impl RequestingUnit {
    /// Returns the tools of its tasks.
    fn tools(&self) -> impl Iterator<Item = Tool> {
        self.spec.iter().flat_map(|spec| Pipeline::tasks_of(spec)).filter_map(|(kind, _)| Tool::named(kind))
    }
}

/// Returns whether the definition of a unit decides on the answer.
fn depends_on_definition(ask: &ResourceAsk) -> bool {
    match ask {
        ResourceAsk::OpenSecret { .. }
        | ResourceAsk::PutArtifact { .. }
        | ResourceAsk::GetArtifact { .. }
        | ResourceAsk::GetArtifactFile { .. }
        | ResourceAsk::StoreMemory { .. }
        | ResourceAsk::SearchMemory(_)
        | ResourceAsk::FindRoutingKey { .. } => true,
        ResourceAsk::GetRights => false,
    }
}

fn spec_of(work: &Work) -> Option<&Arc<Value>> {
    match work {
        Work::Task { spec } => Some(spec),
        Work::Pure { .. } | Work::Child { .. } | Work::Approval { .. } | Work::Delay { .. } => None,
    }
}

/// Checks the definition that a worker outside of this process names for a sub-execution. A name that is a template is refused:
/// the worker renders it, so it could be any definition of the tenant.
fn check_child(spec: Option<&Value>, definition: &Value) -> Result<(), Box<Failure>> {
    let tasks = || spec.into_iter().flat_map(Pipeline::tasks_of).filter(|(kind, _)| *kind == CHILD_KIND);
    let is_text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(is_template);
    let names =
        |config: &Value| NAMES_OF_CHILDREN.iter().all(|name| config.get(name) == definition.get(name));
    if tasks().any(|(_, config)| names(config)) {
        return Ok(());
    }
    let is_rendered = |config: &Value| NAMES_OF_CHILDREN.iter().any(|name| is_text(config.get(name)));
    Err(Box::new(denied(match tasks().any(|(_, config)| is_rendered(config)) {
        true => "a worker outside of the server may start only definitions that the task names without a template; write \
                 the path of the definition, or run the execution at the server"
            .to_owned(),
        false => format!("the worker asked for the execution of {definition}, which the step does not name"),
    })))
}

fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}

pub(super) fn denied(message: String) -> Failure {
    Failure::new(codes::PERMISSION_DENIED, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worker_starts_only_definitions_that_its_step_names() {
        let spec = json!({ "tasks": [
            { "label": "a", "kind": "shell", "config": { "path": "shell" } },
            { "label": "b", "kind": "playbook", "config": { "path": "named", "version": 2, "args": {} } },
            { "label": "c", "kind": "playbook", "config": { "catalog_id": "{{ ctx.name }}" } },
        ] });
        let check =
            |definition: Value| check_child(Some(&spec), &definition).map_err(|failure| failure.message);
        assert_eq!(check(json!({ "path": "named", "version": 2 })), Ok(()));
        for other in
            [json!({ "path": "named" }), json!({ "path": "shell" }), json!({ "name": "x" }), json!("x")]
        {
            assert!(check(other.clone()).is_err_and(|why| why.contains("without a template")), "{other}");
        }
        let statement = "{% if ctx.a %}a{% else %}b{% endif %}";
        let spec =
            json!({ "tasks": [{ "label": "a", "kind": "playbook", "config": { "path": statement } }] });
        let failed = check_child(Some(&spec), &json!({ "path": "a" })).unwrap_err();
        assert!(failed.message.contains("without a template"), "{}", failed.message);
        let plain = json!({ "tasks": [{ "label": "a", "kind": "shell", "config": {} }] });
        let failed = check_child(Some(&plain), &json!({ "path": "named" })).unwrap_err();
        assert_eq!(failed.code, "PERMISSION_DENIED");
        assert!(failed.message.contains("does not name"), "{}", failed.message);
        assert!(check_child(None, &json!({ "path": "named" })).is_err());
    }
}
