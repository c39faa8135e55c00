//! Definitions: from the text a person wrote to the Net the kernel runs.
//!
//! [`compile`] finds the dialect by the document's shape, reads it, checks it and lowers it. It reports all problems at
//! once, each with its position in the text.

mod actions;
mod adapters;
mod ancestors;
mod bounded;
mod code;
mod cycles;
mod diagnostic;
mod document;
pub mod graph;
mod inputs;
mod key_schema;
mod manifest;
mod names;
pub mod plan;
mod playbook;
mod programs;
mod read;
mod source;
mod table;
mod text;
pub mod workflow;

pub use adapters::{Adapters, AdaptersFile, Outside, Unbound, bind, limit_inline, parse_adapters};
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity};
pub use inputs::{HOOK, HOOK_IS_RESERVED, InputProblem, InputsSchema, SECRETS, is_text_input};
pub use manifest::{
    COMPILER, Child, DefaultRetry, Hook, Manifest, Overrides, ProgramUse, Recompiled, SecretUse, Settings,
    TriggerSchedule, has_side_effects, programs_of, recompile, secrets_of,
};
pub use names::hint as name_hint;
pub use serde_json::Value;
pub use source::Literal;
pub use table::{Dialect, Dialects, Identity};
pub use windlass_duties::SodConstraint;
/// Settings that a start may replace, as documents and requests have them.
pub use workflow::{RetryPolicy, failure_mode, retry_schema};

use diagnostic::Problems;
use manifest::Lowered;
use table::Document;
use windlass_kernel::Net;
use windlass_secrets::Marks;

/// A text after compilation.
#[derive(Debug)]
pub struct Compiled {
    /// `None` when the text is no definition at all.
    pub dialect: Option<Dialect>,
    pub name: Option<String>,
    /// Another name by which definitions may start it.
    pub path: Option<String>,
    /// `draft`, `active`, `paused` or `archived`, if the definition has a status: only an active one can be started.
    pub status: Option<&'static str>,
    /// `None` when there is an error among the diagnostics.
    pub net: Option<Net>,
    /// Defaults of the execution's inputs: an object.
    pub workload: Value,
    pub manifest: Manifest,
    /// Sorted by position.
    pub diagnostics: Vec<Diagnostic>,
    /// Warnings about routes that an author seldom intends, for callers that check the definition. Sorted by position.
    pub advice: Vec<Diagnostic>,
    /// Secrets found in the text, which must be in the encrypted store before the definition is.
    pub literals: Vec<Literal>,
    /// The text with handles in place of the secrets: the form that is stored.
    pub source: String,
    /// The text with stars in place of the secrets and every character at its position: the form that is shown.
    pub shown: String,
}

impl Compiled {
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.net.is_some()
    }

    /// Returns the definition as one that is refused for other reasons than its text alone shows, if there are any.
    #[must_use]
    pub fn refused_for(self, reasons: Vec<Diagnostic>) -> Compiled {
        if reasons.is_empty() {
            return self;
        }
        Compiled { net: None, diagnostics: reasons, ..self }
    }

    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.is_error())
    }

    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| !diagnostic.is_error())
    }

    /// Returns the warnings and the advice.
    pub fn warnings_and_advice(&self) -> impl Iterator<Item = &Diagnostic> {
        self.warnings().chain(&self.advice)
    }
}

/// Returns a YAML or JSON text as plain data, read as `compile` reads it; `None` when it cannot be read.
#[must_use]
pub fn as_json(text: &str) -> Option<Value> {
    document::parse(text, &mut Problems::default()).map(|root| root.json())
}

/// Compiles a YAML or JSON text of any dialect of this program. Only its own bindings exist.
#[must_use]
pub fn compile(text: &str) -> Compiled {
    compile_for(text, Outside::Known(&Adapters::none()))
}

/// Compiles like [`compile`], for a process with these bindings.
#[must_use]
pub fn compile_for(text: &str, outside: Outside<'_>) -> Compiled {
    Dialects::builtin().compile(text, None, outside)
}

/// Compiles like [`compile_for`], with names for literals that no other value has.
#[must_use]
pub fn compile_marked(text: &str, marks: &Marks, outside: Outside<'_>) -> Compiled {
    Dialects::builtin().compile(text, Some(marks), outside)
}

impl Dialects<'_> {
    /// Compiles a YAML or JSON text of one of these dialects.
    #[must_use]
    pub fn compile(self, text: &str, marks: Option<&Marks>, outside: Outside<'_>) -> Compiled {
        let mut problems = Problems::default();
        let root = document::parse(text, &mut problems);
        let dialect = root.as_ref().and_then(|root| self.detect(root, &mut problems));
        let lowered = match (dialect.and_then(|dialect| dialect.compiler), &root) {
            (Some(compiler), Some(root)) => {
                (compiler.compile)(&Document { root, text, marks, outside }, &mut problems)
            }
            _ => Lowered::default(),
        };
        let net = lowered.net.filter(|_| !problems.has_errors());
        let diagnostics = problems.into_diagnostics(text, root.as_ref());
        let warnings = diagnostics.iter().filter(|diagnostic| !diagnostic.is_error()).cloned().collect();
        let mut manifest = Manifest { warnings, ..lowered.manifest }.with_net(net.as_ref());
        source::redact(&mut manifest, &lowered.written);
        Compiled {
            dialect,
            name: lowered.name,
            path: lowered.path,
            status: lowered.status,
            manifest,
            net,
            workload: Value::Object(lowered.workload),
            diagnostics,
            advice: lowered.advice.into_diagnostics(text, root.as_ref()),
            source: source::stored(text, &lowered.written),
            shown: source::shown(text, &lowered.written),
            literals: source::literals(lowered.written),
        }
    }
}
