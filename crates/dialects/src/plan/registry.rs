//! Actions that plans name: how they are looked up, and the documents that describe them.

use super::model::{Action, ActionBody, Field};
use super::parse::action_document;
use super::spec;
use crate::adapters::{Adapters, Outside};
use crate::diagnostic::{Diagnostic, Problems};
use crate::document;
use crate::read::Reader;
use serde_json::Value;
use windlass_protocol::BuiltinAction;

/// Reference of a step to a registered action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRef {
    /// An id or a name; `actionID` of a step may be either.
    pub action: String,
    /// Name that the step has in addition to the id: it must be the registered one.
    pub name: Option<String>,
    /// `None`: the newest revision.
    pub revision: Option<u32>,
}

/// A revision of a registered action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAction {
    pub id: String,
    pub name: String,
    pub revision: u32,
    /// Plans cannot be made with an action that is disabled.
    pub is_enabled: bool,
    /// The document as [`parse_action`] accepts it.
    pub document: String,
}

/// Source of the actions that plans name.
pub trait ActionLookup {
    /// Returns the action, `Err` with the names that exist if there is none.
    fn find_action(&self, wanted: &ActionRef) -> Result<RegisteredAction, Vec<String>>;

    /// Returns the registered action that an action in a plan says it is a copy of. `None`: there is nothing to compare it
    /// with, as for a stored plan, whose actions were compared when it was created.
    fn find_original(&self, _claimed: &ActionRef) -> Option<Result<RegisteredAction, Vec<String>>> {
        None
    }
}

/// A lookup without registered actions. Built-in actions and those that are written in place need none.
#[derive(Debug, Clone, Copy)]
pub struct NoActions;

impl ActionLookup for NoActions {
    fn find_action(&self, _: &ActionRef) -> Result<RegisteredAction, Vec<String>> {
        Err(Vec::new())
    }
}

/// A document that describes an action, after its check.
#[derive(Debug)]
pub struct ActionDocument {
    pub name: Option<String>,
    pub description: Option<String>,
    action: Action,
}

impl ActionDocument {
    /// Returns the action in the form that plans freeze, without its id and revision.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = spec::action_json(&self.action);
        if let (Value::Object(fields), Some(description)) = (&mut value, &self.description) {
            fields.insert("description".to_owned(), Value::String(description.clone()));
        }
        value
    }

    /// Returns the names of the parameters.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.action.params.iter().map(|Field { name, .. }| name.text.as_str())
    }

    /// Returns the names of the outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.action.outputs.iter().map(|Field { name, .. }| name.text.as_str())
    }
}

/// Returns whether no registered action may have the name.
#[must_use]
pub fn is_builtin_action(name: &str) -> bool {
    BuiltinAction::named(name).is_some()
}

/// Reads the document of an action to be registered, and reports all problems at once.
pub fn parse_action(text: &str) -> Result<ActionDocument, Vec<Diagnostic>> {
    let (document, diagnostics) = read_action(text);
    match document {
        Some(document) if !diagnostics.iter().any(Diagnostic::is_error) => Ok(document),
        _ => Err(diagnostics),
    }
}

fn read_action(text: &str) -> (Option<ActionDocument>, Vec<Diagnostic>) {
    let mut problems = Problems::default();
    let root = document::parse(text, &mut problems);
    let mut reader = Reader {
        source: text,
        problems: &mut problems,
        marks: None,
        own: Adapters::default(),
        outside: Outside::Unknown,
    };
    let read = root.as_ref().and_then(|root| action_document(root, "the action", &mut reader));
    let document =
        read.map(|(description, action)| ActionDocument { name: action.name.clone(), description, action });
    (document, problems.into_diagnostics(text, root.as_ref()))
}

/// Reads a registered action for a step. Its document was checked when it was registered.
pub(super) fn hydrate(registered: &RegisteredAction) -> Option<Action> {
    let action = parse_action(&registered.document).ok()?.action;
    Some(Action {
        id: Some(registered.id.clone()),
        name: Some(registered.name.clone()),
        revision: Some(registered.revision),
        ..action
    })
    .filter(|action| !matches!(action.body, ActionBody::Unknown))
}
