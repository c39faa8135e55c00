//! Definitions: from the text a person wrote to the Net the kernel runs.
//!
//! [`compile`] finds the dialect by the document's shape, reads it, checks it and lowers it. All problems are told at
//! once, each with its place in the text.

mod detect;
mod diagnostic;
mod document;
pub mod graph;
mod names;
mod playbook;
mod programs;
mod read;
mod source;
mod text;
pub mod workflow;

pub use detect::Dialect;
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity};
pub use playbook::Child;
pub use serde_json::Value;
pub use source::Literal;

use diagnostic::Problems;
use serde_json::json;
use windlass_kernel::Net;
use windlass_kernel::net::FailureMode;
use windlass_secrets::Marks;
use workflow::Overrides;

/// What became of a text.
#[derive(Debug)]
pub struct Compiled {
    /// `None` when the text is no definition at all.
    pub dialect: Option<Dialect>,
    pub name: Option<String>,
    /// What others may call it, beside its name.
    pub path: Option<String>,
    /// `draft`, `active`, `paused` or `archived`, where it says so: whether it may be started.
    pub status: Option<&'static str>,
    /// Definitions it starts, as far as it names them by text. Whoever runs it makes sure that they are there.
    pub children: Vec<Child>,
    /// `None` when there is an error among the diagnostics.
    pub net: Option<Net>,
    /// Defaults of the execution's inputs: an object.
    pub workload: Value,
    /// The failure mode that a workflow sets itself.
    pub failure_mode: Option<FailureMode>,
    /// JSON Schema that the inputs of a start must fit, see [`workflow::InputsSchema`].
    pub inputs_schema: Option<Value>,
    /// Sorted by position.
    pub diagnostics: Vec<Diagnostic>,
    /// Secrets that stood in the text: to be put into the encrypted store before the definition is.
    pub literals: Vec<Literal>,
    /// The text with handles in their place, which may be stored.
    pub source: String,
    /// The text with stars in their place, to show problems in: every character is where it was.
    pub shown: String,
}

impl Compiled {
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.net.is_some()
    }

    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.is_error())
    }

    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| !diagnostic.is_error())
    }
}

/// The dialect's JSON Schema (2020-12), for editors; None where there is none yet.
#[must_use]
pub fn schema(dialect: Dialect) -> Option<Value> {
    match dialect {
        Dialect::Playbook => Some(playbook::schema()),
        Dialect::Workflow => Some(workflow::schema()),
        Dialect::Plan | Dialect::Actions => None,
    }
}

/// A YAML or JSON text as plain data, read as `compile` reads it; None when it cannot be read.
#[must_use]
pub fn as_json(text: &str) -> Option<Value> {
    document::parse(text, &mut Problems::default()).map(|root| root.json())
}

/// A YAML or JSON text of any dialect.
#[must_use]
pub fn compile(text: &str) -> Compiled {
    compile_with(text, &Overrides::default())
}

/// The same, with what a start asks for in place of a workflow's settings: another Net of the same definition. Other
/// dialects have no such settings.
#[must_use]
pub fn compile_with(text: &str, overrides: &Overrides) -> Compiled {
    compiled(text, overrides, None)
}

/// The same as [`compile`], with names for literals that no other value has.
#[must_use]
pub fn compile_marked(text: &str, marks: &Marks) -> Compiled {
    compiled(text, &Overrides::default(), Some(marks))
}

fn compiled(text: &str, overrides: &Overrides, marks: Option<&Marks>) -> Compiled {
    let mut problems = Problems::default();
    let root = document::parse(text, &mut problems);
    let dialect = root.as_ref().and_then(|root| detect::detect(root, &mut problems));
    let lowered = match (dialect, &root) {
        (Some(Dialect::Playbook), Some(root)) => playbook::compile(root, text, marks, &mut problems),
        (Some(Dialect::Workflow), Some(root)) => {
            workflow::compile(root, text, (overrides, marks), &mut problems)
        }
        _ => playbook::Lowered::default(),
    };
    let net = lowered.net.filter(|_| !problems.has_errors());
    Compiled {
        dialect,
        name: lowered.name,
        path: lowered.path,
        status: lowered.status,
        children: lowered.children,
        net,
        failure_mode: lowered.failure_mode,
        workload: lowered.workload.unwrap_or(json!({})),
        inputs_schema: lowered.inputs_schema,
        diagnostics: problems.told(text, root.as_ref()),
        source: source::stored(text, &lowered.written),
        shown: source::shown(text, &lowered.written),
        literals: source::literals(lowered.written),
    }
}
