//! Rights of definitions on this host. Without them, anyone who may upload a definition could act as the user of the
//! server.

use crate::problem::Problem;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use windlass_dialects::ProgramUse;
use windlass_protocol::Rights;
pub use windlass_protocol::Variables;
use windlass_store::{StoredTenant, Tenant};

#[derive(Debug)]
pub struct TenantRights {
    /// Variables of this process that the tenant `default` may read. Other tenants may read no variables.
    variables: Variables,
    /// Whether a tenant may run programs. Default: only the tenant `default` may.
    programs: RwLock<BTreeMap<Tenant, bool>>,
}

impl TenantRights {
    #[must_use]
    pub fn new(variables: Variables, tenants: &[StoredTenant]) -> TenantRights {
        let rights = TenantRights { variables, programs: RwLock::default() };
        tenants.iter().for_each(|tenant| rights.update_tenant(tenant));
        rights
    }

    /// Inserts or replaces the rights of a tenant that is on disk.
    pub fn update_tenant(&self, tenant: &StoredTenant) {
        let mut programs = self.programs.write().unwrap_or_else(PoisonError::into_inner);
        programs.insert(tenant.id.clone(), tenant.programs);
    }

    /// Refuses with 403 a definition that runs programs, if the tenant may not. The message names its first such step.
    pub fn check(&self, tenant: &Tenant, programs: &[ProgramUse]) -> Result<(), Problem> {
        let Some(ProgramUse { step, tool }) = programs.first() else { return Ok(()) };
        if self.of(tenant).programs {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "step `{step}` runs a program (`{tool}`), and definitions of this tenant may not; an operator of the server \
             allows it with PATCH /api/v1/tenants/{tenant} {{\"programs\": \"allowed\"}}"
        )))
    }
}

impl TenantRights {
    /// Returns the current rights of a tenant.
    pub fn of(&self, tenant: &Tenant) -> Rights {
        let is_default = *tenant == Tenant::default();
        let variables = if is_default { self.variables.clone() } else { Variables::Listed(Vec::new()) };
        let programs = self.programs.read().unwrap_or_else(PoisonError::into_inner);
        Rights { programs: programs.get(tenant).copied().unwrap_or(is_default), variables }
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
    fn only_the_default_tenant_runs_programs_by_default() {
        let rights = TenantRights::new(Variables::All, &[tenant("tnt_1", true), tenant("tnt_2", false)]);
        let may = |id: &str| rights.of(&Tenant::new(id)).programs;
        assert_eq!(["default", "tnt_1", "tnt_2", "tnt_3", ""].map(may), [true, true, false, false, false]);
        rights.update_tenant(&tenant("default", false));
        rights.update_tenant(&tenant("tnt_2", true));
        assert_eq!(["default", "tnt_1", "tnt_2"].map(may), [false, true, true]);
    }

    #[test]
    fn only_the_default_tenant_reads_variables_of_the_server() {
        let listed = Variables::Listed(vec!["TOKEN".to_owned(), "APP_*".to_owned()]);
        let rights = TenantRights::new(listed, &[tenant("tnt_1", true)]);
        let may = |name: &str| rights.of(&Tenant::default()).variables.contain(name);
        assert_eq!(["TOKEN", "APP_", "APP_KEY"].map(may), [true; 3]);
        assert_eq!(["TOKENS", "TOKE", "APP", "MY_APP_KEY", "HOME", ""].map(may), [false; 6]);
        let of_other = |rights: &TenantRights, name| rights.of(&Tenant::new("tnt_1")).variables.contain(name);
        assert!(!of_other(&rights, "TOKEN"));
        let all = TenantRights::new(Variables::All, &[]);
        assert!(all.of(&Tenant::default()).variables.contain("HOME") && !of_other(&all, "HOME"));
    }
}
