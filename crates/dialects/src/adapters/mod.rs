//! Bindings: the tool that runs an operation of actions, or a kind of tool that is not built in.
//!
//! A definition has bindings under `adapters`, and an adapters file has them for every definition of a server. Those
//! of the definition are applied when it is compiled. The remaining calls are listed in the manifest, and the file
//! binds them when an execution starts. In both cases a task of the Net is replaced, so an execution never changes its
//! bindings.

mod bind;
mod file;
mod parse;
mod section;
#[cfg(test)]
mod tests;

pub use bind::{bind, limit_inline};
pub(crate) use bind::{bind_own, list_unbound, works};
pub use file::{AdaptersFile, parse_adapters};
pub(crate) use section::{ADAPTERS, parse_section, section_schema};

use crate::diagnostic::Problems;
use crate::read::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windlass_protocol::{CHILD_KIND, Key, Tool, WORKER_KIND};

/// The bindings of one definition or of one adapters file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adapters {
    bindings: BTreeMap<String, Binding>,
}

/// The task that takes the place of an operation. Its arguments are those of the operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Binding {
    pub(crate) kind: String,
    pub(crate) config: Map<String, Value>,
    pub(crate) timeout_ms: Option<u64>,
    /// Credentials that its fields read.
    pub(crate) keychain: Vec<Key>,
}

/// The bindings outside of a definition, as far as its compiler knows them.
#[derive(Debug, Clone, Copy)]
pub enum Outside<'a> {
    /// Bindings of the server that stores the definition. It may have others when it starts an execution.
    Known(&'a Adapters),
    /// Bindings of the process that runs the definition at once: calls without a binding cannot run.
    Final(&'a Adapters),
    /// Another process will run it, and checks it then.
    Unknown,
}

impl Outside<'_> {
    pub(crate) fn binds(self, name: &str) -> bool {
        match self {
            Outside::Known(adapters) | Outside::Final(adapters) => adapters.binds(name),
            Outside::Unknown => false,
        }
    }
}

/// A call that no binding exists for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbound {
    pub step: String,
    /// The operation, or the kind of tool.
    pub name: String,
    /// Reason for which an existing binding cannot be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The two sorts of names that bindings have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// `entity:verb`
    Operation,
    Tool,
}

impl Sort {
    pub(crate) fn of(name: &str) -> Sort {
        if name.contains(':') { Sort::Operation } else { Sort::Tool }
    }

    /// Returns the section that has bindings of this sort.
    pub(crate) fn section(self) -> &'static str {
        match self {
            Sort::Operation => "operations",
            Sort::Tool => "tools",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Sort::Operation => "operation",
            Sort::Tool => "kind of tool",
        }
    }
}

impl Adapters {
    /// Returns no bindings.
    #[must_use]
    pub const fn none() -> Adapters {
        Adapters { bindings: BTreeMap::new() }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    #[must_use]
    pub fn binds(&self, name: &str) -> bool {
        self.bindings.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.bindings.keys().map(String::as_str)
    }

    fn get(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(name)
    }
}

impl Unbound {
    #[must_use]
    pub fn message(&self) -> String {
        let Unbound { step, name, problem } = self;
        match problem {
            Some(problem) => format!("`{step}` cannot call `{name}`: {problem}"),
            None => format!("`{step}` calls the {} `{name}`, which is not bound", Sort::of(name).noun()),
        }
    }

    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.problem.is_none().then(|| how_to_bind(&self.name))
    }
}

/// Returns whether tasks of this kind run without a binding.
pub(crate) fn is_built_in(kind: &str) -> bool {
    Tool::named(kind).is_some() || kind == CHILD_KIND || kind == WORKER_KIND
}

/// Returns the line that binds a name, in a definition or in an adapters file.
pub(crate) fn binding_line(name: &str) -> String {
    match Sort::of(name) {
        Sort::Operation => format!(
            "adapters: {{operations: {{\"{name}\": {{kind: http, method: POST, url: \"https://...\", json: \"{{{{ args }}}}\"}}}}}}"
        ),
        Sort::Tool => format!("adapters: {{tools: {{{name}: {{kind: python, code: \"result = args\"}}}}}}"),
    }
}

/// Returns the hint for a name that is not bound.
pub(crate) fn how_to_bind(name: &str) -> String {
    format!(
        "add it to the definition, or to the file that `--adapters` or WINDLASS_ADAPTERS names: `{}`",
        binding_line(name)
    )
}

/// Reports an operation that an action calls and that nothing binds: a warning if another process may still bind it.
pub(crate) fn check_operation(
    operation: &Name,
    own: &Adapters,
    outside: Outside<'_>,
    problems: &mut Problems,
) {
    if own.binds(&operation.text) || outside.binds(&operation.text) {
        return;
    }
    let code = match outside {
        Outside::Final(_) => "E0165",
        Outside::Known(_) | Outside::Unknown => "W0257",
    };
    let message = format!("the operation `{}` is not bound", operation.text);
    problems.add(code, &operation.at, message, how_to_bind(&operation.text));
}
