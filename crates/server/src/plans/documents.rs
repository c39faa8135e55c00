//! Plans read with the actions that are registered, and stored plans. A stored plan has a copy of its actions, and needs no
//! registry.

use crate::app::App;
use crate::cache::{Cache, CacheBounds};
use crate::database::DatabaseReader;
use crate::ids;
use crate::problem::Problem;
use crate::routes::actions::which;
use std::cell::RefCell;
use std::sync::Arc;
use windlass_dialects::Diagnostic;
use windlass_dialects::plan::{
    ActionLookup, ActionRef, PlanDocument, RegisteredAction, is_plan, read_plan, read_stored_plan,
};
use windlass_store::{Catalog as _, DefinitionId, Registry as _, StoreError, StoredDefinition, Tenant};

/// Maximum number of plans in memory, and of bytes that they take.
const PLANS: CacheBounds = CacheBounds { entries_max: 1_000, weight_max: 64 << 20 };
/// Maximum number of names of actions that are suggested for an unknown one.
const NAMES_MAX: usize = 200;
/// Maximum number of actions that one plan names.
const WANTED_MAX: usize = 1_000;

/// Stored plans that were used lately.
#[derive(Debug)]
pub struct Plans(Cache<DefinitionId, Arc<PlanDocument>>);

impl Default for Plans {
    fn default() -> Plans {
        Plans(Cache::new(PLANS))
    }
}

impl Plans {
    /// Returns a stored plan with what follows from its document.
    pub(crate) async fn document(
        &self,
        app: &App,
        definition: &StoredDefinition,
    ) -> Result<Arc<PlanDocument>, Problem> {
        if let Some(known) = self.0.get(&definition.id) {
            return Ok(known);
        }
        let (source, bytes) = (definition.source.clone(), definition.source.len());
        let read = move || read_stored_plan(&source);
        let read = app.compiling.run(&definition.tenant, bytes, read).await?;
        let document = read.map_err(|found| Problem::definition(found.iter()))?;
        let document = Arc::new(document);
        self.0.insert(definition.id, document.clone(), 8 * bytes as u64);
        Ok(document)
    }
}

/// Collects the actions that a plan names.
#[derive(Debug, Default)]
struct ActionNames(RefCell<Vec<ActionRef>>);

impl ActionNames {
    fn add(&self, wanted: &ActionRef) {
        let mut all = self.0.borrow_mut();
        if all.len() < WANTED_MAX && !all.contains(wanted) {
            all.push(wanted.clone());
        }
    }
}

impl ActionLookup for ActionNames {
    fn find_action(&self, wanted: &ActionRef) -> Result<RegisteredAction, Vec<String>> {
        self.add(wanted);
        Err(Vec::new())
    }

    fn find_original(&self, claimed: &ActionRef) -> Option<Result<RegisteredAction, Vec<String>>> {
        self.add(claimed);
        None
    }
}

/// The actions that a plan names, as they are registered.
#[derive(Debug, Default)]
struct Found {
    actions: Vec<(ActionRef, RegisteredAction)>,
    names: Vec<String>,
}

impl ActionLookup for Found {
    fn find_action(&self, wanted: &ActionRef) -> Result<RegisteredAction, Vec<String>> {
        let found = self.actions.iter().find(|(named, _)| named == wanted);
        found.map(|(_, action)| action.clone()).ok_or_else(|| self.names.clone())
    }

    fn find_original(&self, claimed: &ActionRef) -> Option<Result<RegisteredAction, Vec<String>>> {
        Some(self.find_action(claimed))
    }
}

type ReadPlan = Result<PlanDocument, Vec<Diagnostic>>;

/// Reads a plan with the actions of the tenant, frozen at their revisions.
pub(crate) async fn read_registered(app: &App, tenant: &Tenant, text: String) -> Result<ReadPlan, Problem> {
    let (text, bytes): (Arc<str>, usize) = (text.as_str().into(), text.len());
    let first = text.clone();
    let collect = move || {
        let wanted = ActionNames::default();
        let read = read_plan(&first, &wanted);
        (read, wanted.0.into_inner())
    };
    let (read, wanted) = app.compiling.run(tenant, bytes, collect).await?;
    if wanted.is_empty() {
        return Ok(read);
    }
    // The actions of a stored plan were compared with the registry when it was created. Some may be deleted by now.
    if let Ok(plan) = &read
        && is_stored(app, tenant, plan).await?
    {
        return Ok(read);
    }
    let found = find_actions(app, tenant, wanted).await?;
    app.compiling.run(tenant, bytes, move || read_plan(&text, &found)).await
}

/// A text with the actions of a plan written out.
pub(crate) struct Hydrated {
    pub(crate) text: String,
    /// What is wrong with the plan. Its text is as it was.
    pub(crate) refused: Vec<Diagnostic>,
}

/// Writes the actions of a plan out. Texts of other dialects are returned as they are.
pub(crate) async fn hydrate(app: &App, tenant: &Tenant, text: String) -> Result<Hydrated, Problem> {
    let unchanged = |text: String| Hydrated { text, refused: Vec::new() };
    // A cheap check first: most definitions are not plans.
    if !text.contains("steps") || !text.contains("action") {
        return Ok(unchanged(text));
    }
    let (looked, bytes) = (text.clone(), text.len());
    if !app.compiling.run(tenant, bytes, move || is_plan(&looked)).await? {
        return Ok(unchanged(text));
    }
    Ok(match read_registered(app, tenant, text.clone()).await? {
        Ok(plan) => unchanged(plan.text()),
        Err(refused) => Hydrated { text, refused },
    })
}

async fn is_stored(app: &App, tenant: &Tenant, plan: &PlanDocument) -> Result<bool, Problem> {
    let (id, of) = (ids::plan(&plan.id)?, tenant.clone());
    app.readers.of(tenant).look(move |reader| Ok(reader.workflow(&of, id)?.is_some())).await
}

async fn find_actions(app: &App, tenant: &Tenant, wanted: Vec<ActionRef>) -> Result<Found, Problem> {
    let of = tenant.clone();
    let look = move |reader: &mut DatabaseReader| {
        let mut found = Found::default();
        for named in wanted {
            if let Some((action, revision)) = reader.action(&of, &which(&named.action), named.revision)? {
                let registered = RegisteredAction {
                    id: ids::format_action(action.id),
                    name: action.name,
                    revision: revision.revision,
                    is_enabled: action.enabled,
                    document: revision.document,
                };
                found.actions.push((named, registered));
            }
        }
        found.names = reader.actions(&of, None, NAMES_MAX)?.into_iter().map(|action| action.name).collect();
        Ok::<_, StoreError>(found)
    };
    app.readers.of(tenant).look(look).await
}
