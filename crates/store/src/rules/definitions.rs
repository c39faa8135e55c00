//! Definitions: which workflow a definition becomes a version of, and who may claim a hook.

use crate::access::Audit;
use crate::commit::{Applied, Definition, DefinitionId, Target, WorkflowId};
use crate::hooks::HookClaim;
use crate::store::{StoreResult, Which};
use serde_json::json;

/// A workflow of the definition's tenant that is not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkflowFacts<K> {
    /// Id of the definition in the store.
    pub key: K,
    pub id: WorkflowId,
    /// The newest version; 0 for a workflow without versions.
    pub newest: u32,
}

/// Facts about the workflows of a definition's tenant, looked up when [`judge_definition`] needs them.
pub trait DefinitionFacts {
    type Key;

    /// Returns the newest workflow of the definition's name.
    fn find_named(&mut self) -> StoreResult<Option<WorkflowFacts<Self::Key>>>;

    fn find_by_id(&mut self, id: WorkflowId) -> StoreResult<Option<WorkflowFacts<Self::Key>>>;

    /// Returns the newest version of a workflow if it has the same text and the same net.
    fn find_same(&mut self, workflow: &WorkflowFacts<Self::Key>) -> StoreResult<Option<DefinitionId>>;

    /// Returns the workflow that has the claim on this method and path.
    fn hook_owner(&mut self, claim: &HookClaim) -> StoreResult<Option<WorkflowId>>;
}

/// Actions of a store for a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerdict<K> {
    /// Write nothing: the definition is known or refused.
    Answer(Applied),
    /// Write this version, of a new workflow where there is none.
    Insert { workflow: Option<WorkflowFacts<K>>, id: WorkflowId, version: u32 },
}

/// Decides which version of which workflow a definition becomes.
///
/// The same text may compile to another net under a later version of the program: then it is a new version. So is an
/// old text that returns after another one, because the newest version is always what was defined last.
pub fn judge_definition<F: DefinitionFacts>(
    definition: &Definition,
    facts: &mut F,
) -> StoreResult<DefinitionVerdict<F::Key>> {
    let (workflow, id) = match definition.target {
        Target::New(id) => (None, id),
        Target::Named(id) | Target::Identified(id) => {
            let found = match definition.target {
                Target::Identified(_) => facts.find_by_id(id)?,
                Target::New(_) | Target::Named(_) | Target::After(..) => facts.find_named()?,
            };
            let Some(workflow) = found else { return insert(definition, facts, None, id) };
            if let Some(same) = facts.find_same(&workflow)? {
                let known = Applied::Defined(same, workflow.newest, workflow.id);
                return Ok(DefinitionVerdict::Answer(known));
            }
            let id = workflow.id;
            (Some(workflow), id)
        }
        Target::After(id, expected) => match facts.find_by_id(id)? {
            Some(workflow) if expected.is_none_or(|expected| expected == workflow.newest) => {
                (Some(workflow), id)
            }
            Some(_) | None => return Ok(DefinitionVerdict::Answer(Applied::Fenced)),
        },
    };
    insert(definition, facts, workflow, id)
}

/// Inserts the next version unless another workflow has one of its hooks.
fn insert<F: DefinitionFacts>(
    definition: &Definition,
    facts: &mut F,
    workflow: Option<WorkflowFacts<F::Key>>,
    id: WorkflowId,
) -> StoreResult<DefinitionVerdict<F::Key>> {
    for claim in &definition.hooks {
        if let Some(owner) = facts.hook_owner(claim)?.filter(|owner| *owner != id || workflow.is_none()) {
            return Ok(DefinitionVerdict::Answer(Applied::HookTaken(owner)));
        }
    }
    let version = workflow.as_ref().map_or(0, |workflow| workflow.newest) + 1;
    Ok(DefinitionVerdict::Insert { workflow, id, version })
}

/// Returns the audit row of a version that is written, if its author is known.
#[must_use]
pub fn audit_definition(definition: &Definition, id: WorkflowId, version: u32) -> Option<Audit> {
    let author = definition.author.clone()?;
    let action = if version == 1 { "workflow.create" } else { "workflow.change" };
    Some(Audit {
        tenant: definition.tenant.clone(),
        at: definition.at,
        actor: author.actor,
        role: author.role,
        action: action.to_owned(),
        target: Which::Id(id).to_string(),
        details: json!({ "name": definition.name, "version": version }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Author;
    use crate::conformance::world::{chain, definition};

    /// Workflow 7 has this newest version, and these facts.
    #[derive(Debug, Clone, Copy, Default)]
    struct Facts {
        newest: Option<u32>,
        same: Option<DefinitionId>,
        hook_owner: Option<WorkflowId>,
    }

    const OWN: WorkflowId = WorkflowId(7);

    impl DefinitionFacts for Facts {
        type Key = ();

        fn find_named(&mut self) -> StoreResult<Option<WorkflowFacts<()>>> {
            Ok(self.newest.map(|newest| WorkflowFacts { key: (), id: OWN, newest }))
        }

        fn find_by_id(&mut self, id: WorkflowId) -> StoreResult<Option<WorkflowFacts<()>>> {
            Ok(self.find_named()?.filter(|workflow| workflow.id == id))
        }

        fn find_same(&mut self, _workflow: &WorkflowFacts<()>) -> StoreResult<Option<DefinitionId>> {
            Ok(self.same)
        }

        fn hook_owner(&mut self, _claim: &HookClaim) -> StoreResult<Option<WorkflowId>> {
            Ok(self.hook_owner)
        }
    }

    #[test]
    fn a_definition_becomes_the_next_version_of_its_target() {
        let (made, other) = (WorkflowId(1), WorkflowId(2));
        let facts = |newest| Facts { newest, ..Facts::default() };
        let same = Facts { same: Some(DefinitionId(3)), ..facts(Some(4)) };
        let claimed = |hook_owner| Facts { hook_owner: Some(hook_owner), ..facts(Some(4)) };
        let insert = |id, version| Ok((id, version));
        let cases = [
            (Target::Named(made), facts(None), insert(made, 1)),
            (Target::Named(made), facts(Some(4)), insert(OWN, 5)),
            (Target::Named(made), same, Err(Applied::Defined(DefinitionId(3), 4, OWN))),
            (Target::New(made), facts(Some(4)), insert(made, 1)),
            (Target::Identified(made), facts(Some(4)), insert(made, 1)),
            (Target::Identified(OWN), facts(Some(4)), insert(OWN, 5)),
            (Target::Identified(OWN), same, Err(Applied::Defined(DefinitionId(3), 4, OWN))),
            (Target::New(made), same, insert(made, 1)),
            (Target::After(OWN, None), same, insert(OWN, 5)),
            (Target::After(OWN, Some(4)), facts(Some(4)), insert(OWN, 5)),
            (Target::After(OWN, Some(3)), facts(Some(4)), Err(Applied::Fenced)),
            (Target::After(other, None), facts(Some(4)), Err(Applied::Fenced)),
            (Target::Named(made), claimed(OWN), insert(OWN, 5)),
            (Target::Named(made), claimed(other), Err(Applied::HookTaken(other))),
            (Target::New(made), claimed(OWN), Err(Applied::HookTaken(OWN))),
        ];
        for (target, mut facts, expected) in cases {
            let claim = HookClaim { method: "GET".into(), path: "a".into(), require_auth: false };
            let definition = Definition { target, hooks: vec![claim], ..definition("d", "text", &chain(1)) };
            let verdict = judge_definition(&definition, &mut facts).expect("no lookup fails");
            let found = match verdict {
                DefinitionVerdict::Answer(applied) => Err(applied),
                DefinitionVerdict::Insert { workflow, id, version } => {
                    assert_eq!(workflow.is_some(), version > 1, "{target:?} {facts:?}");
                    Ok((id, version))
                }
            };
            assert_eq!(found, expected, "{target:?} {facts:?}");
        }
    }

    #[test]
    fn the_author_of_a_version_is_audited() {
        let mut definition = definition("d", "text", &chain(1));
        assert_eq!(audit_definition(&definition, OWN, 1), None);
        definition.author = Some(Author { actor: "user_1".into(), role: "admin".into() });
        let actions = [1, 2].map(|version| audit_definition(&definition, OWN, version).map(|row| row.action));
        assert_eq!(actions, [Some("workflow.create".to_owned()), Some("workflow.change".to_owned())]);
    }
}
