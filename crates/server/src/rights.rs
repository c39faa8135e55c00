//! What definitions of a tenant may do on this machine. Whoever may upload one would else be the user of the server.

use crate::problem::Problem;
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use windlass_kernel::Net;
use windlass_kernel::net::Work;
use windlass_protocol::{Pipeline, Tool};
use windlass_store::{StoredTenant, Tenant};
use windlass_worker::Rights;

/// Variables of this process that the tenant `default` may read as secrets. They are of whoever runs the server: other
/// tenants have none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variables {
    All,
    /// Names, or beginnings of names with a star.
    Listed(Vec<String>),
}

impl Variables {
    fn have(&self, name: &str) -> bool {
        let fits = |listed: &String| match listed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => listed == name,
        };
        match self {
            Variables::All => true,
            Variables::Listed(listed) => listed.iter().any(fits),
        }
    }
}

#[derive(Debug)]
pub struct TenantRights {
    variables: Variables,
    /// Who is not here may not; the tenant `default` may, unless it is here.
    programs: RwLock<BTreeMap<Tenant, bool>>,
}

impl TenantRights {
    #[must_use]
    pub fn new(variables: Variables, tenants: &[StoredTenant]) -> TenantRights {
        let rights = TenantRights { variables, programs: RwLock::default() };
        tenants.iter().for_each(|tenant| rights.learn(tenant));
        rights
    }

    /// A tenant as it is on disk.
    pub fn learn(&self, tenant: &StoredTenant) {
        let mut programs = self.programs.write().unwrap_or_else(PoisonError::into_inner);
        programs.insert(tenant.id.clone(), tenant.programs);
    }

    /// A 403 that names the first step of a definition that runs one, for a tenant that may not.
    pub fn check(&self, tenant: &Tenant, programs: &[RunsProgram]) -> Result<(), Problem> {
        let Some(RunsProgram { step, tool }) = programs.first() else { return Ok(()) };
        if self.may_run_programs(&tenant.0) {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "step `{step}` runs a program (`{tool}`), and definitions of this tenant may not; whoever runs the server \
             allows it with PATCH /api/v1/tenants/{tenant} {{\"programs\": \"allowed\"}}"
        )))
    }
}

impl Rights for TenantRights {
    fn may_run_programs(&self, tenant: &str) -> bool {
        let tenant = Tenant::new(tenant);
        let programs = self.programs.read().unwrap_or_else(PoisonError::into_inner);
        programs.get(&tenant).copied().unwrap_or(tenant == Tenant::default())
    }

    fn may_read_variable(&self, tenant: &str, name: &str) -> bool {
        *tenant == *Tenant::default().0 && self.variables.have(name)
    }
}

/// A step of a definition that runs a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsProgram {
    pub step: String,
    pub tool: String,
}

/// Compensation included. What a definition starts as another execution is asked when that begins.
#[must_use]
pub fn programs_of(net: &Net) -> Vec<RunsProgram> {
    let works = net.steps().flat_map(|(_, step)| {
        let hook = step.compensation.iter().map(|hook| &hook.work);
        std::iter::once(&step.work).chain(hook).map(|work| (&step.name, work))
    });
    works.flat_map(|(step, work)| programs(step, work)).collect()
}

fn programs(step: &str, work: &Work) -> Vec<RunsProgram> {
    let Work::Task { spec } = work else { return Vec::new() };
    let found = |tool: String| RunsProgram { step: step.to_owned(), tool };
    match Pipeline::deserialize(&**spec) {
        Ok(pipeline) => {
            let kinds = pipeline.tasks.into_iter().map(|task| task.kind);
            kinds
                .filter(|kind| Tool::named(kind).is_some_and(|tool| tool.row().runs_programs))
                .map(found)
                .collect()
        }
        // What cannot be read is not known to be harmless.
        Err(_) => vec![found("unknown".to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::Millis;
    use windlass_store::TenantLimits;

    fn tenant(id: &str, programs: bool) -> StoredTenant {
        let (id, at) = (Tenant::new(id), Millis(0));
        let limits = TenantLimits::default();
        StoredTenant { id, name: "T".to_owned(), limits, programs, created_at: at, updated_at: at }
    }

    #[test]
    fn only_the_first_tenant_runs_programs_unless_it_is_said() {
        let rights = TenantRights::new(Variables::All, &[tenant("tnt_1", true), tenant("tnt_2", false)]);
        let may = |id: &str| rights.may_run_programs(id);
        assert_eq!(["default", "tnt_1", "tnt_2", "tnt_3", ""].map(may), [true, true, false, false, false]);
        rights.learn(&tenant("default", false));
        rights.learn(&tenant("tnt_2", true));
        assert_eq!(["default", "tnt_1", "tnt_2"].map(may), [false, true, true]);
    }

    #[test]
    fn variables_are_of_whoever_runs_the_server() {
        let listed = Variables::Listed(vec!["TOKEN".to_owned(), "APP_*".to_owned()]);
        let rights = TenantRights::new(listed, &[tenant("tnt_1", true)]);
        let may = |name: &str| rights.may_read_variable("default", name);
        assert_eq!(["TOKEN", "APP_", "APP_KEY"].map(may), [true; 3]);
        assert_eq!(["TOKENS", "TOKE", "APP", "MY_APP_KEY", "HOME", ""].map(may), [false; 6]);
        assert!(!rights.may_read_variable("tnt_1", "TOKEN"));
        let all = TenantRights::new(Variables::All, &[]);
        assert!(all.may_read_variable("default", "HOME") && !all.may_read_variable("tnt_1", "HOME"));
    }

    #[test]
    fn programs_are_found_wherever_a_definition_has_them() {
        let found = |text: &str| {
            let net = windlass_dialects::compile(text).net.expect("it compiles");
            let found = programs_of(&net).into_iter().map(|one| format!("{} {}", one.step, one.tool));
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
