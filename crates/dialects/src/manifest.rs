//! Knowledge of the compiler about a definition in addition to its Net. It is stored with the version, so that a
//! start, a hook, a dry run and a check of rights need not compile again.

use crate::adapters::{Outside, Unbound, list_unbound, works};
use crate::diagnostic::{Diagnostic, Problems};
use crate::source::Written;
use crate::{Dialect, compile_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_duties::SodConstraint;
use windlass_kernel::net::{Affinity, EndPolicy, FailureMode, NetError, Recovery, Retry, Work};
use windlass_kernel::{Net, StepId, any_of};
use windlass_protocol::{KeySource, Pipeline, Provider, Task, Tool, ToolEffect};
use windlass_views::CodePlace;

/// Number of this compiler, stored with every manifest. Raise it when manifests have new content: stored versions are
/// compiled again when a program with a higher number opens the store (docs/adr/0032).
pub const COMPILER: u32 = 6;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// JSON Schema that the inputs of a start must fit, see [`InputsSchema`](crate::InputsSchema).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs_schema: Option<Value>,
    /// Requests that start it, at most one for each path and method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Times at which it starts by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<TriggerSchedule>,
    /// Settings that a start may replace; `None` where the dialect has no such settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramUse>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretUse>,
    /// Definitions that it starts, as far as it names them literally. The caller checks that they exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Diagnostic>,
    /// Positions of the code of its tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodePlace>,
    /// Whether only callers who may edit definitions may start it, because its templates are program text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editors_only: bool,
    /// Calls that an adapters file has to bind before it can start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unbound: Vec<Unbound>,
    /// Whether one worker takes an execution as a whole, so that its end may wait for uploads.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_worker: bool,
    /// Whether steps wait until the target of their route is ready.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits_routes: bool,
    /// Constraints on the people who approve and complete steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sod_constraints: Vec<SodConstraint>,
}

/// A request under `/hooks` that starts the definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    pub method: String,
    /// Path without surrounding slashes.
    pub path: String,
    /// Whether a token is required, which is the default.
    pub require_auth: bool,
}

/// The times of a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerSchedule {
    pub node: String,
    /// A name of the IANA database.
    pub timezone: Option<String>,
    /// `schedule` of a schedule's document. Whether its times exist is checked where it is stored.
    pub schedule: Value,
}

/// A definition that a step starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// Path as in the definition: `path` or `catalog_id`.
    pub path: String,
    /// `None`: the newest.
    pub version: Option<u32>,
    /// Diagnostic for the case that there is no such definition.
    pub nowhere: Diagnostic,
}

/// A step that runs a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUse {
    pub step: String,
    pub tool: String,
}

/// A step that reads a stored secret whose name is written in the definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretUse {
    pub step: String,
    pub secret: String,
}

/// Settings of a definition that a start may replace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Value in the definition.
    pub failure_mode: Option<FailureMode>,
    /// Steps without a retry policy of their own.
    pub default_retries: Vec<DefaultRetry>,
}

/// A step that has the retry policy of its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRetry {
    pub step: u32,
    /// Attempts that the type of the step sets instead of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_max: Option<u32>,
}

/// Settings of one start in place of the definition's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Policy of steps without one of their own.
    pub retry: Option<Retry>,
    pub failure_mode: Option<FailureMode>,
    pub recovery: Option<Recovery>,
}

impl Overrides {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Overrides::default()
    }

    /// Returns the Net of the definition with these settings.
    pub fn apply(&self, net: &Net, settings: &Settings) -> Result<Net, NetError> {
        let mut spec = net.spec().clone();
        if let Some(failure) = self.failure_mode {
            spec.policy.failure = failure;
            spec.policy.end = end_policy(failure);
        }
        spec.policy.recovery = self.recovery.unwrap_or(spec.policy.recovery);
        for DefaultRetry { step, attempts_max } in &settings.default_retries {
            if let (Some(retry), Some(step)) = (&self.retry, spec.steps.get_mut(*step as usize)) {
                let attempts_max = attempts_max.unwrap_or(retry.attempts_max);
                step.retry = Retry { attempts_max, resumes: step.retry.resumes, ..retry.clone() };
            }
        }
        Net::new(spec)
    }
}

/// Returns how an execution with this failure mode ends.
pub(crate) fn end_policy(failure: FailureMode) -> EndPolicy {
    match failure {
        FailureMode::FailFast => EndPolicy::FailOnAny,
        FailureMode::Continue | FailureMode::Collect => EndPolicy::Partial,
    }
}

impl Manifest {
    /// Adds the facts that follow from the Net that runs.
    #[must_use]
    pub(crate) fn with_net(mut self, net: Option<&Net>) -> Manifest {
        let Some(net) = net else { return self };
        self.programs = programs_of(net);
        self.secrets = secrets_of(net);
        self.editors_only = net.policy().editors_only;
        self.unbound = list_unbound(net);
        self.one_worker = net.policy().affinity == Affinity::OneWorker;
        self.awaits_routes = net.steps().any(|(_, step)| step.wait_for.is_some());
        self
    }
}

/// A stored version, compiled again.
#[derive(Debug)]
pub struct Recompiled {
    pub manifest: Manifest,
    /// The Net that replaces the stored one, if it must be replaced.
    pub net: Option<Net>,
}

/// Compiles a version again that an older compiler stored. Its Net is replaced only if the dialect requires it for
/// Nets of that compiler. If the text has errors by now, the stored Net stays; if templates of older Nets are program text,
/// only editors may start it from then on.
#[must_use]
pub fn recompile((dialect, source): (&str, &str), compiler: u32, stored: &Net) -> Recompiled {
    // A defect of the compiler must not keep the store from being opened.
    let compiled = std::panic::catch_unwind(|| compile_for(source, Outside::Unknown));
    let (manifest, net) = compiled.map_or_else(|_| Default::default(), |found| (found.manifest, found.net));
    let found = Dialect::of_name(dialect).filter(|dialect| compiler < dialect.nets_since);
    let net = match (net, found) {
        (_, None) => None,
        (Some(net), Some(_)) => Some(net).filter(|net| net.digest() != stored.digest()),
        (None, Some(dialect)) if dialect.older_nets_are_programs => for_editors(stored),
        (None, Some(_)) => None,
    };
    Recompiled { manifest: manifest.with_net(Some(net.as_ref().unwrap_or(stored))), net }
}

fn for_editors(net: &Net) -> Option<Net> {
    let mut spec = net.spec().clone();
    spec.policy.editors_only = true;
    Net::new(spec).ok()
}

/// Returns the steps that run programs, compensation included. Definitions that it starts are checked when they start.
#[must_use]
pub fn programs_of(net: &Net) -> Vec<ProgramUse> {
    let works = net.steps().flat_map(|(_, step)| works(step).map(|work| (&step.name, work)));
    works.flat_map(|(step, work)| programs(step, work)).collect()
}

fn programs(step: &str, work: &Work) -> Vec<ProgramUse> {
    let Work::Task { spec } = work else { return Vec::new() };
    let found = |tool: String| ProgramUse { step: step.to_owned(), tool };
    match Pipeline::deserialize(&**spec) {
        Ok(pipeline) => {
            let kinds = pipeline.tasks.into_iter().map(|task| task.kind);
            let runs_programs =
                |kind: &String| Tool::named(kind).is_some_and(|tool| tool.row().runs_programs);
            kinds.filter(runs_programs).map(found).collect()
        }
        // A spec that cannot be read may be harmful.
        Err(_) => vec![found("unknown".to_owned())],
    }
}

/// Returns whether running a step again can change something outside, as far as its definition shows.
#[must_use]
pub fn has_side_effects(net: &Net, step: StepId) -> bool {
    let found = net.step(step);
    let by_work = match &found.work {
        Work::Pure { .. } | Work::Delay { .. } | Work::Approval { .. } => false,
        Work::Child { .. } => true,
        // A spec that cannot be read may have side effects.
        Work::Task { spec } => {
            Pipeline::deserialize(&**spec).map_or(true, |pipeline| pipeline.tasks.iter().any(changes_things))
        }
    };
    let in_body = || net.members(step).iter().any(|member| has_side_effects(net, *member));
    found.side_effecting || by_work || in_body()
}

fn changes_things(task: &Task) -> bool {
    match Tool::named(&task.kind).map_or(ToolEffect::Anything, |tool| tool.row().effect) {
        ToolEffect::Nothing => false,
        ToolEffect::ByMethod => {
            let method = task.config.get("method").and_then(Value::as_str).unwrap_or("GET");
            !["GET", "HEAD", "OPTIONS"].contains(&method.to_ascii_uppercase().as_str())
        }
        ToolEffect::Anything => true,
    }
}

/// Returns the stored secrets that steps read, compensation included. A name that is a template is known only at run time.
#[must_use]
pub fn secrets_of(net: &Net) -> Vec<SecretUse> {
    let mut found = Vec::new();
    let works = net.steps().flat_map(|(_, step)| works(step).map(move |work| (step, work)));
    for (step, work) in works {
        let Work::Task { spec } = work else { continue };
        let pipeline = Pipeline::deserialize(&**spec).unwrap_or_default();
        let names = pipeline.keychain.iter().flat_map(|key| match &key.source {
            KeySource::Named { provider: Provider::Windlass, fields } => fields.values().collect(),
            KeySource::Secret { provider: Provider::Windlass, name } => vec![name],
            KeySource::Named { provider: Provider::Env, .. }
            | KeySource::Secret { provider: Provider::Env, .. }
            | any_of![KeySource: Fields Bound OAuth2] => Vec::new(),
        });
        let plain = names.filter_map(Value::as_str).filter(|name| !name.contains("{{"));
        found.extend(plain.map(|name| SecretUse { step: step.name.clone(), secret: name.to_owned() }));
    }
    found
}

/// Result of a dialect for a document.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) name: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) status: Option<&'static str>,
    pub(crate) net: Option<Net>,
    pub(crate) workload: serde_json::Map<String, Value>,
    /// Knowledge of the dialect; facts from the Net and the problems are added to it.
    pub(crate) manifest: Manifest,
    pub(crate) written: Vec<Written>,
    /// Warnings for callers that check the document, which other callers do not get.
    pub(crate) advice: Problems,
}

#[cfg(test)]
mod tests {
    use crate::compile;

    #[test]
    fn a_manifest_says_how_executions_of_the_net_run() {
        let found = |text: &str| {
            let manifest = compile(text).manifest;
            (manifest.one_worker, manifest.awaits_routes)
        };
        let plan = |routing: &str| {
            format!(
                "params: [{{name: box}}]\nsteps: [{{id: a, action: {{script: 'true'}}{routing}}}]\n\
                 cluster: {{fromSandbox: box}}\nrunner: default\n"
            )
        };
        assert_eq!(found("workflow:\n  - step: a\n    tool: {kind: noop}\n"), (false, false));
        assert_eq!(found(&plan("")), (true, false));
        assert_eq!(found(&plan(", routingContext: {literal: {sandbox: s}}")), (true, true));
        assert_eq!(found(&plan(", routingContext: {literal: {routingKey: k}}")), (true, false));
    }

    #[test]
    fn programs_are_found_wherever_a_definition_has_them() {
        let found = |text: &str| {
            let found =
                compile(text).manifest.programs.into_iter().map(|one| format!("{} {}", one.step, one.tool));
            found.collect::<Vec<_>>()
        };
        let playbook = |tool: &str| format!("workflow:\n  - step: a\n    tool: {tool}\n");
        assert_eq!(found(&playbook("{kind: noop}")), Vec::<String>::new());
        assert_eq!(found(&playbook("{kind: http, url: 'https://example.com'}")), Vec::<String>::new());
        assert_eq!(found(&playbook("{kind: shell, command: id}")), ["a shell"]);
        assert_eq!(found(&playbook("{kind: python, code: 'def main(): return 1'}")), ["a python"]);
        assert_eq!(found(&playbook("[{x: {kind: noop}}, {y: {kind: shell, command: id}}]")), ["a shell"]);
        let node = |kind: &str, config: &str| {
            format!(
                "{{\"name\": \"w\", \"nodes\": [{{\"id\": \"t\", \"type\": \"trigger\", \"config\": {{}}}}, {{\"id\": \
                 \"n\", \"type\": \"{kind}\", \"config\": {config}}}], \"edges\": [{{\"id\": \"e\", \"source\": \"t\", \
                 \"target\": \"n\"}}]}}"
            )
        };
        assert_eq!(found(&node("code", "{\"language\": \"python\", \"code\": \"1\"}")), ["n code"]);
    }
}
