//! An execution of a plan in the words of the document: `{id, spec, status}`.

use crate::inputs::SECRETS;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use windlass_expr::Template;
use windlass_kernel::net::{DeclaredOutput, Step, Work};
use windlass_kernel::{Kind, Net, Outcome, Phase, StepId};
use windlass_protocol::{
    Binding, PLAN_STEP_KIND, Pipeline, PlanStep, RefSource, StepInput, StepOutput, drill_into,
};
use windlass_views::{
    AnswerBudget, ArtifactCopy, DialectView, End, Firing, HeldValue, History, Leases, LoggedOutput,
    ValueBudget, ViewInput, Workflow, execution_id, time,
};

pub(crate) const VIEW: DialectView =
    DialectView { name: "plan", lists_unreached: true, reads_inputs_schema: true, build: build_view };

/// Phases of steps, in the order of the document.
const STEP_PHASES: [&str; 6] = ["init", "waiting", "running", "completed", "failed", "skipped"];

fn build_view(input: &ViewInput<'_>, budget: &mut AnswerBudget<'_>) -> Value {
    let ViewInput { net, history, leases, workflow, .. } = *input;
    let head = &history.state().head;
    let mut values = ValueBudget::default();
    let inputs = budget.read_inputs(&head.inputs);
    let schema = workflow.and_then(|workflow| workflow.inputs_schema.as_ref());
    let params = Params { inputs: inputs.as_deref(), schema };
    let spec = spec(params, &head.inputs, workflow, budget);
    let view = PlanView { net, history, leases, newest: newest(history), params };
    let steps = view.steps(budget, &mut values);
    let mut status = Map::new();
    status.insert("phase".to_owned(), json!(phase(history.state().phase())));
    let is_dispatched = !matches!(history.state().phase(), Phase::Blank | Phase::Queued);
    if let Some(runner) = history.runner.as_ref().filter(|_| is_dispatched) {
        status.insert("runnerHost".to_owned(), json!(runner));
    }
    status.insert("createdAt".to_owned(), json!(time(history.created_at.unwrap_or(head.at))));
    status.insert("updatedAt".to_owned(), json!(time(head.at)));
    if let Some(ended_at) = history.ended_at {
        status.insert("completedAt".to_owned(), json!(time(ended_at)));
    }
    let phases: Vec<&str> = steps.iter().filter_map(|step| step["phase"].as_str()).collect();
    status.insert("stepCounts".to_owned(), count_phases(&phases));
    let was_dispatched = is_dispatched && history.runner.is_some();
    status.insert("inputs".to_owned(), json!(if was_dispatched { params.resolved() } else { Vec::new() }));
    if history.state().phase() == Phase::Ended(Outcome::Completed) {
        status.insert("outputs".to_owned(), json!(view.outputs(&steps)));
    }
    if let Some(error) = view.error() {
        status.insert("error".to_owned(), json!(error));
    }
    status.insert("steps".to_owned(), Value::Array(steps));
    json!({ "id": execution_id(head.id), "spec": spec, "status": status })
}

fn newest(history: &History) -> BTreeMap<StepId, &Firing> {
    history.whole().map(|firing| (firing.step, firing)).collect()
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Blank | Phase::Queued => "pending",
        Phase::Starting => "dispatching",
        Phase::Running | Phase::Paused | Phase::Draining | Phase::Compensating => "running",
        Phase::Finalizing => "finalizing",
        Phase::Ended(Outcome::Completed) => "completed",
        Phase::Ended(Outcome::Partial | Outcome::Failed) => "failed",
        Phase::Ended(Outcome::Cancelled) => "cancelled",
    }
}

/// Returns the parameters, as far as the answer has space for their values, and the names of secrets.
fn spec(
    params: Params<'_>,
    stored: &Value,
    workflow: Option<&Workflow>,
    budget: &mut AnswerBudget<'_>,
) -> Map<String, Value> {
    let mut values = ValueBudget::default();
    let mut spec = Map::new();
    spec.extend(workflow.map(|workflow| ("planID".to_owned(), json!(workflow.name))));
    let whole = params.inputs.and_then(Value::as_object);
    let shown = match whole {
        Some(inputs) => {
            Value::Object(budget.show_fields(&mut values, inputs, |name| name != SECRETS, stored))
        }
        None => budget.show_inputs(&mut values, stored),
    };
    spec.insert("params".to_owned(), shown);
    let secrets = whole.and_then(|inputs| inputs.get(SECRETS)).cloned();
    spec.insert("secrets".to_owned(), secrets.unwrap_or_else(|| json!({})));
    spec
}

/// Parameters of an execution.
#[derive(Clone, Copy)]
struct Params<'v> {
    /// Inputs of the execution as a whole; None if they cannot be read.
    inputs: Option<&'v Value>,
    schema: Option<&'v Value>,
}

impl<'v> Params<'v> {
    fn secret(self, name: &str) -> Option<&'v Value> {
        self.inputs?.get(SECRETS)?.get(name)
    }

    fn default(self, name: &str) -> Option<&'v Value> {
        self.schema?.get("properties")?.get(name)?.get("default")
    }

    /// Returns the binding of each parameter of the plan.
    fn resolved(self) -> Vec<Value> {
        let Some(inputs) = self.inputs else { return Vec::new() };
        let declared = self.schema.and_then(|schema| schema.get("properties")?.as_object());
        let params = declared.into_iter().flatten().map(|(name, _)| name).filter(|name| *name != SECRETS);
        let bound = |name: &String| {
            if let Some(secret) = self.secret(name) {
                return json!({ "name": name, "resolvedVia": "callerSecret", "secretName": secret });
            }
            let via = match (inputs.get(name), self.default(name)) {
                (Some(_), _) => "literal",
                (None, Some(_)) => "default",
                (None, None) => "unbound",
            };
            json!({ "name": name, "resolvedVia": via })
        };
        params.map(bound).collect()
    }

    /// Returns whether a reference to a parameter has a value.
    fn has_value(self, name: &str, drill: &[String]) -> bool {
        let Some(inputs) = self.inputs else { return true };
        let value = inputs.get(name).or_else(|| self.default(name));
        self.secret(name).is_some() || value.is_some_and(|value| drill_into(value, drill).is_some())
    }
}

/// Returns the number of steps of an execution in each phase.
#[must_use]
pub fn step_counts(net: &Net, history: &History, leases: &Leases) -> Value {
    let newest = newest(history);
    let phases = net.steps().map(|(id, _)| step_phase(history, leases, newest.get(&id).copied()));
    count_phases(&phases.collect::<Vec<_>>())
}

fn count_phases(phases: &[&str]) -> Value {
    let count = |phase: &str| phases.iter().filter(|found| **found == phase).count();
    STEP_PHASES.iter().map(|phase| ((*phase).to_owned(), json!(count(phase)))).collect::<Map<_, _>>().into()
}

fn step_phase(history: &History, leases: &Leases, firing: Option<&Firing>) -> &'static str {
    let Some(firing) = firing else {
        return match history.state().phase() {
            Phase::Blank | Phase::Queued | Phase::Starting | Phase::Running | Phase::Paused => "init",
            Phase::Draining | Phase::Compensating | Phase::Finalizing | Phase::Ended(_) => "skipped",
        };
    };
    match firing.end {
        Some(End::Completed) => "completed",
        Some(End::Failed { .. }) => "failed",
        Some(End::Skipped(_)) => "skipped",
        Some(End::Cancelled) if firing.began_at.is_some() => "failed",
        Some(End::Cancelled) => "skipped",
        None => live_phase(history, leases, firing),
    }
}

fn live_phase(history: &History, leases: &Leases, firing: &Firing) -> &'static str {
    match history.state().run(firing.run).map(|run| run.state.kind()) {
        Some(Kind::Waiting) => "waiting",
        Some(Kind::Offered) if leases.contains_key(&firing.run) => "running",
        Some(
            Kind::Offered
            | Kind::Ready
            | Kind::Backoff
            | Kind::Delayed
            | Kind::Manual
            | Kind::Child
            | Kind::PausedChild
            | Kind::Looping,
        )
        | None => "init",
    }
}

struct PlanView<'v> {
    net: &'v Net,
    history: &'v History,
    leases: &'v Leases,
    newest: BTreeMap<StepId, &'v Firing>,
    params: Params<'v>,
}

impl PlanView<'_> {
    fn steps(&self, budget: &mut AnswerBudget<'_>, values: &mut ValueBudget) -> Vec<Value> {
        let mut drilled = ValueBudget::default();
        self.net.steps().map(|(id, step)| self.step(id, step, budget, values, &mut drilled)).collect()
    }

    fn step(
        &self,
        id: StepId,
        step: &Step,
        budget: &mut AnswerBudget<'_>,
        values: &mut ValueBudget,
        drilled: &mut ValueBudget,
    ) -> Value {
        let firing = self.newest.get(&id).copied();
        let phase = step_phase(self.history, self.leases, firing);
        let mut entry = json!({ "id": step.name, "phase": phase });
        let (Some(firing), Some(described)) = (firing, describe_step(step)) else { return entry };
        if ["running", "completed", "failed"].contains(&phase) {
            let inputs = described.inputs.iter();
            entry["inputs"] = inputs.map(|input| self.input_status(input, budget, drilled)).collect();
        }
        if phase == "completed" {
            let result = firing.output.as_ref().map(|held| show(held, budget, values)).unwrap_or_default();
            let outputs =
                described.outputs.iter().filter_map(|output| output_status(output, &result, budget));
            entry["outputs"] = outputs.collect();
        }
        if let Some(logs) = logs(firing, phase, budget) {
            entry["logs"] = logs;
        }
        if phase == "failed" {
            let message = firing.failure.as_ref().map(|failure| failure.message.as_str());
            entry["error"] =
                json!(message.filter(|_| firing.end != Some(End::Cancelled)).unwrap_or("cancelled"));
        }
        entry
    }

    fn input_status(
        &self,
        input: &StepInput,
        budget: &mut AnswerBudget<'_>,
        drilled: &mut ValueBudget,
    ) -> Value {
        let via = |via: &str| json!({ "name": input.name, "resolvedVia": via });
        match &input.binding {
            Binding::Literal { .. } => via("literal"),
            Binding::Ref { text, from, drill, default } => match self.has_value(from, drill, budget, drilled)
            {
                true => json!({ "name": input.name, "resolvedVia": "ref", "ref": text }),
                false => via(if default.is_some() { "default" } else { "unbound" }),
            },
            Binding::Default { .. } => via("default"),
            Binding::Unbound => via("unbound"),
        }
    }

    /// Returns whether a reference has a value. One whose value is not at hand is taken to have one. `drilled` bounds the
    /// large values that are read for this.
    fn has_value(
        &self,
        from: &RefSource,
        drill: &[String],
        budget: &mut AnswerBudget<'_>,
        drilled: &mut ValueBudget,
    ) -> bool {
        let (step, output) = match from {
            RefSource::Param(name) => return self.params.has_value(name, drill),
            RefSource::Output { step, output } => (step, output),
        };
        let firing = self.net.find(step).and_then(|step| self.newest.get(&step));
        let Some(held) = firing.and_then(|firing| firing.output.as_ref()?.value.clone()) else { return true };
        let Some(result) = open(&held, budget, drilled) else { return true };
        match result.get(output) {
            None => false,
            Some(_) if drill.is_empty() => true,
            Some(value) => {
                open(value, budget, drilled).is_none_or(|value| drill_into(&value, drill).is_some())
            }
        }
    }

    /// Outputs of the plan, found in those of the steps. A source that was skipped, or that its step did not write, is left
    /// out.
    fn outputs(&self, steps: &[Value]) -> Vec<Value> {
        let status = |output: &DeclaredOutput| {
            let step = &self.net.step(output.step).name;
            let of_step = steps.iter().find(|found| found["id"] == **step)?.get("outputs")?.as_array()?;
            let mut found = of_step.iter().find(|found| found["name"] == *output.key)?.clone();
            found["name"] = json!(output.name);
            if let Some(value) = found.get_mut("value") {
                *value = drill_into(value, &output.drill).cloned().unwrap_or_default();
            }
            found["stepRef"] = json!({ "stepID": step, "outputName": output.key });
            if !output.drill.is_empty() {
                found["drill"] = json!(output.drill);
            }
            Some(found)
        };
        self.net.policy().outputs.iter().filter_map(status).collect()
    }

    /// Returns a failure of the execution itself. Failures of steps are shown with the steps.
    fn error(&self) -> Option<String> {
        let (failure, _) = self.history.failure.as_ref()?;
        let is_cancelled = self.history.state().phase() == Phase::Ended(Outcome::Cancelled);
        (failure.facts.step.is_none() && !is_cancelled).then(|| failure.message.clone())
    }
}

/// Reads the description of a step that its worker gets; none of a step of another dialect.
pub(crate) fn describe_step(step: &Step) -> Option<PlanStep> {
    let Work::Task { spec } = &step.work else { return None };
    let kind = spec.get("tasks").and_then(|tasks| tasks.get(0)?.get("kind")?.as_str());
    if kind != Some(PLAN_STEP_KIND) {
        return None;
    }
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).ok()?;
    let mut config = pipeline.tasks.into_iter().next()?.config;
    let field = config.get_mut(PlanStep::FIELD)?;
    *field = Template::compile(field).ok()?.render(&Map::new()).ok()?;
    PlanStep::read(&config).ok()
}

/// Returns an output as a value or an artifact; none for an output that the step did not write.
fn output_status(output: &StepOutput, result: &Value, budget: &AnswerBudget<'_>) -> Option<Value> {
    let mut status = json!({ "name": output.name });
    if !output.metadata.is_empty() {
        status["metadata"] = json!(output.metadata);
    }
    set_value(&mut status, result.get(&output.name)?, budget);
    Some(status)
}

/// Returns the captured streams. Those of a step that ended before its worker reported them are read from the log.
fn logs(firing: &Firing, phase: &str, budget: &AnswerBudget<'_>) -> Option<Value> {
    let reported = firing.metadata.as_ref().and_then(|metadata| metadata.get(PlanStep::LOGS)?.as_array());
    match reported {
        Some(logs) => Some(logs.iter().map(|log| log_status(log, budget)).collect()),
        None if phase == "failed" => {
            let LoggedOutput { stdout, stderr } = budget.read_log(firing.run)?;
            let logs = [("stdout", stdout), ("stderr", stderr)];
            Some(logs.map(|(stream, text)| json!({ "stream": stream, "value": text })).into_iter().collect())
        }
        None => None,
    }
}

fn log_status(log: &Value, budget: &AnswerBudget<'_>) -> Value {
    let mut status = json!({ "stream": log["stream"] });
    set_value(&mut status, &log["value"], budget);
    status
}

fn set_value(status: &mut Value, value: &Value, budget: &AnswerBudget<'_>) {
    match artifact(value, budget) {
        Some(artifact) => status["artifact"] = artifact,
        None => status["value"] = value.clone(),
    }
}

/// Fields of a reference to an artifact, with the state of its upload.
fn artifact(value: &Value, budget: &AnswerBudget<'_>) -> Option<Value> {
    let key = windlass_artifact::key(value)?;
    let digest = windlass_artifact::digest(key)?;
    let byte = |at: usize| u8::from_str_radix(digest.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digest.len()).step_by(2).filter_map(byte).collect();
    let copy = budget.find_copy(key);
    let ready = copy == ArtifactCopy::Ready;
    let mut artifact =
        json!({ "size": value.get("bytes"), "checksum": BASE64_STANDARD.encode(bytes), "ready": ready });
    if let ArtifactCopy::Failed(error) = copy {
        artifact["error"] = json!(error);
    }
    Some(artifact)
}

/// Returns a value, or the one that it refers to; None if that is too large or missing.
fn open<'v>(
    value: &'v Value,
    budget: &mut AnswerBudget<'_>,
    drilled: &mut ValueBudget,
) -> Option<Cow<'v, Value>> {
    if windlass_artifact::key(value).is_none() {
        return Some(Cow::Borrowed(value));
    }
    let opened = budget.show_inputs(drilled, value);
    windlass_artifact::key(&opened).is_none().then_some(Cow::Owned(opened))
}

/// Returns the result of a step, also if it is stored as an artifact.
fn show(held: &HeldValue, budget: &mut AnswerBudget<'_>, values: &mut ValueBudget) -> Value {
    let shown = budget.show(held);
    match windlass_artifact::key(&shown) {
        Some(_) => budget.show_inputs(values, &shown),
        None => (*shown).clone(),
    }
}
