//! Names of the secrets that a unit of work may open: those that its stored definition names. A name that is a template is
//! rendered here if it reads nothing but inputs of the execution, and no worker chose them. Other names are known only to the
//! process that runs the step, and the server believes only itself.

use serde::Deserialize as _;
use serde_json::Value;
use std::borrow::Cow;
use windlass_engine::RequestingUnit;
use windlass_expr::{Scope, Template};
use windlass_kernel::ExecutionId;
use windlass_protocol::{
    CHILD_KIND, Key, KeySource, PLAN_STEP_KIND, Pipeline, PlanStep, Provider, RoutingTarget, Tool,
};

/// Fields of tasks that name a secret, and keys below them that do.
const CREDENTIALS: [&str; 2] = ["auth", "credential"];
const NAMES_BELOW: [&str; 2] = ["credential", "secret"];

/// Relation of a definition to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    Named,
    /// The definition computes names from values that only the process has that runs the step.
    Computed,
    NotNamed,
}

/// Returns whether a unit names a secret. `inputs` are the whole inputs of its execution.
pub(crate) fn find_secret(unit: &RequestingUnit, inputs: &Value, wanted: &str) -> Naming {
    let known = Known { execution: unit.execution, inputs: Some(inputs).filter(|_| !unit.inputs_of_worker) };
    let mut search = Search { known, wanted, is_named: false, is_computed: unit.reads_children };
    if unit.is_whole {
        let bound = inputs.get(PlanStep::SECRET_NAMES).and_then(Value::as_object);
        let is_bound = bound.into_iter().flatten().any(|(_, name)| name == wanted);
        search.is_named = is_bound && !unit.inputs_of_worker;
        search.is_computed |= is_bound && unit.inputs_of_worker;
    }
    if let Some(Ok(pipeline)) = unit.spec.as_deref().map(Pipeline::deserialize) {
        search.pipeline(&pipeline);
    }
    unit.reads.iter().for_each(|spec| search.results(spec));
    match (search.is_named, search.is_computed) {
        (true, _) => Naming::Named,
        (false, true) => Naming::Computed,
        (false, false) => Naming::NotNamed,
    }
}

/// Returns whether a unit is a step of a plan with this routing target.
pub(crate) fn find_target(unit: &RequestingUnit, inputs: &Value, wanted: &RoutingTarget) -> Naming {
    // Targets are no secrets: the worker of a step may choose them.
    let known = Known { execution: unit.execution, inputs: Some(inputs) };
    let tasks = unit.spec.iter().flat_map(|spec| Pipeline::tasks_of(spec));
    let routing = tasks.filter(|(kind, _)| *kind == PLAN_STEP_KIND);
    let mut routing = routing.filter_map(|(_, config)| config.get(PlanStep::ROUTING));
    match routing.next().map(|template| known.render(template)) {
        None => Naming::NotNamed,
        Some(None) => Naming::Computed,
        Some(Some(target)) => match serde_json::from_value::<RoutingTarget>(target) {
            Ok(target) if target == *wanted => Naming::Named,
            Ok(_) | Err(_) => Naming::NotNamed,
        },
    }
}

struct Search<'s> {
    known: Known<'s>,
    wanted: &'s str,
    is_named: bool,
    is_computed: bool,
}

impl Search<'_> {
    fn pipeline(&mut self, pipeline: &Pipeline) {
        pipeline.keychain.iter().for_each(|key| self.key(key));
        let credentials = pipeline.node.iter().flat_map(|node| node.credentials.values());
        self.is_named |= credentials.into_iter().any(|name| name == self.wanted);
        for task in &pipeline.tasks {
            for field in CREDENTIALS {
                task.config
                    .get(field)
                    .into_iter()
                    .for_each(|value| self.credential(value, &pipeline.keychain));
            }
            self.result(&task.kind, task.config.get("name"), task.config.get("provider"));
        }
    }

    fn key(&mut self, key: &Key) {
        match &key.source {
            KeySource::Fields { fields } => fields.values().for_each(|field| self.handles(field)),
            KeySource::OAuth2 { headers, data, .. } => {
                headers.values().chain(data.values()).for_each(|field| self.handles(field));
            }
            KeySource::Secret { provider: Provider::Windlass, name } => self.name(name),
            KeySource::Named { provider: Provider::Windlass, fields }
            | KeySource::Bound { provider: Provider::Windlass, fields } => {
                fields.values().for_each(|name| self.name(name));
            }
            KeySource::Secret { provider: Provider::Env, .. }
            | KeySource::Named { provider: Provider::Env, .. }
            | KeySource::Bound { provider: Provider::Env, .. } => {}
        }
    }

    /// Handles that the definition has in place of values.
    fn handles(&mut self, value: &Value) {
        if let Some(name) = windlass_artifact::secret(value) {
            self.is_named |= name == self.wanted;
            return;
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|field| self.handles(field)),
            Value::Array(items) => items.iter().for_each(|item| self.handles(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A credential names an entry of the keychain or a secret.
    fn credential(&mut self, value: &Value, keychain: &[Key]) {
        match value {
            Value::String(name) if keychain.iter().any(|key| key.name == *name) => {}
            Value::String(_) => self.name(value),
            Value::Object(fields) => {
                for name in NAMES_BELOW.iter().filter_map(|key| fields.get(*key)) {
                    self.credential(name, keychain);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
    }

    /// Handles in the results of an earlier step.
    fn results(&mut self, spec: &Value) {
        for (kind, config) in Pipeline::tasks_of(spec) {
            self.result(kind, config.get("name"), config.get("provider"));
        }
    }

    fn result(&mut self, kind: &str, name: Option<&Value>, provider: Option<&Value>) {
        // The result of another execution may be a handle.
        self.is_computed |= kind == CHILD_KIND;
        if kind == Tool::Secrets.kind() && provider.and_then(Value::as_str) != Some("env") {
            name.into_iter().for_each(|name| self.name(name));
        }
    }

    fn name(&mut self, template: &Value) {
        match self.known.render(template) {
            Some(name) => self.is_named |= name == self.wanted,
            None => self.is_computed = true,
        }
    }
}

/// Names whose values are stored, and the same for every process.
struct Known<'k> {
    execution: ExecutionId,
    /// None: a worker may have chosen the inputs.
    inputs: Option<&'k Value>,
}

impl Known<'_> {
    /// Renders a template; None if it reads other names. A template that no process can render is no name.
    fn render(&self, template: &Value) -> Option<Value> {
        let Ok(template) = Template::compile(template) else { return Some(Value::Null) };
        let is_known = |root: &str| match root {
            "workload" => self.inputs.is_some(),
            other => other == "execution_id",
        };
        if !template.reads().iter().all(|read| is_known(&read.root)) {
            return None;
        }
        Some(template.render(self).unwrap_or_default())
    }
}

impl Scope for Known<'_> {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        match (root, key) {
            ("workload", Some(key)) => self.inputs?.get(key).map(Cow::Borrowed),
            ("workload", None) => self.inputs.map(Cow::Borrowed),
            ("execution_id", None) => Some(Cow::Owned(format!("{:032x}", self.execution.0).into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn unit(spec: Value, reads: Vec<Value>) -> RequestingUnit {
        let reads = reads.into_iter().map(Arc::new).collect();
        RequestingUnit { spec: Some(Arc::new(spec)), reads, ..RequestingUnit::default() }
    }

    fn task(kind: &str, config: Value) -> Value {
        json!({ "label": kind, "kind": kind, "config": config })
    }

    #[test]
    fn a_secret_is_named_wherever_a_definition_names_it() {
        let key =
            |source: Value| json!({ "name": "k", "playbook": "p", "scope": "execution", "source": source });
        let keychain = json!([
            key(json!({ "from": "fields", "fields": { "a": { "deep": [{ "$secret": "one" }] } } })),
            key(json!({ "from": "secret", "provider": "windlass", "name": "two" })),
            key(
                json!({ "from": "named", "provider": "windlass", "fields": { "a": "{{ workload.which }}-db" } })
            ),
            key(json!({ "from": "bound", "provider": "windlass",
                "fields": { "p": "{{ workload['$secrets']['p']|default(none) }}" } })),
            key(json!({ "from": "secret", "provider": "env", "name": "VARIABLE" })),
            key(json!({ "from": "o_auth2", "endpoint": "https://x", "method": "POST", "auto_renew": true,
                "data": { "s": { "$secret": "four" } } })),
        ]);
        let tasks = json!([
            task("http", json!({ "url": "x", "auth": "five" })),
            task("postgres", json!({ "auth": { "credential": "six", "user": "seven" } })),
            task("http", json!({ "url": "x", "auth": "k" })),
            task("secrets", json!({ "name": "eight" })),
            task("secrets", json!({ "name": "HOME", "provider": "env" })),
        ]);
        let node = json!({ "id": "n", "name": "n", "kind": "code", "credentials": { "API": "nine" } });
        let spec = json!({ "tasks": tasks, "keychain": keychain, "node": node });
        let read = json!({ "tasks": [task("secrets", json!({ "name": "ten" }))] });
        let unit = unit(spec, vec![read]);
        let inputs = json!({ "which": "three", "$secrets": { "p": "bound", "q": "other" } });
        let find = |name| find_secret(&unit, &inputs, name);
        for name in ["one", "two", "three-db", "bound", "four", "five", "six", "eight", "nine", "ten"] {
            assert_eq!(find(name), Naming::Named, "{name}");
        }
        for name in ["seven", "k", "VARIABLE", "HOME", "other", "three", "admin", ""] {
            assert_eq!(find(name), Naming::NotNamed, "{name}");
        }
    }

    #[test]
    fn a_name_that_follows_from_other_values_is_computed() {
        let find = |spec: Value, reads: Vec<Value>| find_secret(&unit(spec, reads), &json!({}), "x");
        let spec = |kind: &str, config: Value| json!({ "tasks": [task(kind, config)] });
        // Results of these tasks are handles, so they count where a later step reads them, too.
        for spec in [
            spec("secrets", json!({ "name": "{{ ctx.name }}" })),
            spec("playbook", json!({ "path": "other" })),
        ] {
            assert_eq!(find(spec.clone(), Vec::new()), Naming::Computed, "{spec}");
            assert_eq!(find(json!({ "tasks": [] }), vec![spec]), Naming::Computed);
        }
        let authorised = spec("http", json!({ "auth": "{{ args.auth }}" }));
        assert_eq!(find(authorised.clone(), Vec::new()), Naming::Computed);
        assert_eq!(find(json!({ "tasks": [] }), vec![authorised]), Naming::NotNamed);
        assert_eq!(find_secret(&RequestingUnit::default(), &json!({}), "x"), Naming::NotNamed);
    }

    #[test]
    fn inputs_that_a_worker_chose_name_no_secret() {
        let name = json!({ "tasks": [task("secrets", json!({ "name": "{{ workload.which }}" }))] });
        let inputs = json!({ "which": "admin", "$secrets": { "p": "admin" } });
        let of_worker = RequestingUnit { inputs_of_worker: true, ..unit(name.clone(), Vec::new()) };
        assert_eq!(find_secret(&of_worker, &inputs, "admin"), Naming::Computed);
        assert_eq!(find_secret(&unit(name, Vec::new()), &inputs, "admin"), Naming::Named);
        let whole = RequestingUnit { is_whole: true, inputs_of_worker: true, ..RequestingUnit::default() };
        assert_eq!(find_secret(&whole, &inputs, "admin"), Naming::Computed);
        assert_eq!(find_secret(&whole, &inputs, "other"), Naming::NotNamed);
        let written = json!({ "tasks": [task("secrets", json!({ "name": "written" }))] });
        let written = RequestingUnit { inputs_of_worker: true, ..unit(written, Vec::new()) };
        assert_eq!(find_secret(&written, &inputs, "written"), Naming::Named);
    }

    #[test]
    fn a_whole_execution_names_the_secrets_that_its_parameters_are_bound_to() {
        let whole = RequestingUnit { is_whole: true, ..RequestingUnit::default() };
        let inputs = json!({ "p": "plain", "$secrets": { "token": "stored" } });
        let found = ["stored", "token", "plain"].map(|name| find_secret(&whole, &inputs, name));
        assert_eq!(found, [Naming::Named, Naming::NotNamed, Naming::NotNamed]);
        let step = unit(json!({ "tasks": [] }), Vec::new());
        assert_eq!(find_secret(&step, &inputs, "stored"), Naming::NotNamed);
    }

    #[test]
    fn the_target_of_a_step_is_the_one_in_its_definition() {
        let target =
            |name: &str| RoutingTarget { sandbox: Some(name.to_owned()), ..RoutingTarget::default() };
        let find = |routing: Value, name: &str| {
            let step =
                unit(json!({ "tasks": [task("plan_step", json!({ "routing": routing }))] }), Vec::new());
            find_target(&step, &json!({ "box": "a" }), &target(name))
        };
        assert_eq!(find(json!({ "sandbox": "a" }), "a"), Naming::Named);
        assert_eq!(find(json!({ "sandbox": "a" }), "b"), Naming::NotNamed);
        assert_eq!(find(json!({ "sandbox": "{{ workload['box'] }}" }), "a"), Naming::Named);
        assert_eq!(find(json!({ "sandbox": "{{ workload['box'] }}" }), "b"), Naming::NotNamed);
        assert_eq!(find(json!({ "sandbox": "{{ steps['s']['o'] }}" }), "b"), Naming::Computed);
        let plain = unit(json!({ "tasks": [task("shell", json!({}))] }), Vec::new());
        assert_eq!(find_target(&plain, &json!({}), &target("a")), Naming::NotNamed);
    }
}
