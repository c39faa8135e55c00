//! The table of dialects: one row holds everything that the rest of the program knows about a dialect.

#[cfg(test)]
mod tests;

use crate::adapters::Outside;
use crate::diagnostic::Problems;
use crate::document::Node;
use crate::manifest::Lowered;
use crate::{actions, plan, playbook, workflow};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use windlass_secrets::Marks;
use windlass_views::DialectView;

/// One dialect. Two rows with the same name are the same dialect.
#[derive(Clone, Copy)]
pub struct Dialect {
    pub(crate) name: &'static str,
    /// Describes the shape in one clause, for an author whose document has no known shape.
    pub(crate) shape: &'static str,
    pub(crate) has_shape: fn(&Node) -> bool,
    pub(crate) identity: Identity,
    /// Builds the view of an execution in the words of the dialect.
    pub(crate) view: &'static DialectView,
    /// Nets of compilers before this number are replaced by the Nets that the text compiles to now.
    pub(crate) nets_since: u32,
    /// Whether values become program text in templates of those Nets. One that cannot be replaced is for editors then.
    pub(crate) older_nets_are_programs: bool,
    /// `None`: the shape is known, and definitions of it are refused.
    pub(crate) compiler: Option<Compiler>,
}

/// Identity of the definitions of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A definition has the name that its author gives it. A change is another version of it.
    ByName,
    /// The name of a definition follows from its content: this prefix and 32 hexadecimal digits. It never changes.
    ByContent { prefix: &'static str },
}

/// The part of a dialect that turns documents into Nets.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    /// Returns the JSON Schema (2020-12) for editors.
    pub(crate) schema: fn() -> Value,
    pub(crate) compile: fn(&Document<'_>, &mut Problems) -> Lowered,
}

/// A document that has the shape of a dialect.
pub(crate) struct Document<'d> {
    pub(crate) root: &'d Node,
    pub(crate) text: &'d str,
    /// Names for literals that no other value has; `None`: literals are named by their place alone.
    pub(crate) marks: Option<&'d Marks>,
    /// Bindings outside of the document.
    pub(crate) outside: Outside<'d>,
}

/// The dialects that this program has, in the order in which a document is compared with them.
const BUILTIN: [Dialect; 4] = [playbook::DIALECT, workflow::DIALECT, actions::DIALECT, plan::DIALECT];

/// A set of dialects.
#[derive(Debug, Clone, Copy)]
pub struct Dialects<'t>(pub(crate) &'t [Dialect]);

impl Dialects<'static> {
    /// Returns the dialects that this program has.
    #[must_use]
    pub const fn builtin() -> Dialects<'static> {
        Dialects(&BUILTIN)
    }
}

impl<'t> Dialects<'t> {
    pub fn names(self) -> impl Iterator<Item = &'static str> + 't {
        self.0.iter().map(|dialect| dialect.name)
    }

    /// Returns the dialects that definitions can be written in.
    pub fn supported(self) -> impl Iterator<Item = Dialect> + 't {
        self.0.iter().copied().filter(|dialect| dialect.compiler.is_some())
    }

    #[must_use]
    pub fn named(self, name: &str) -> Option<Dialect> {
        self.0.iter().copied().find(|dialect| dialect.name == name)
    }

    /// Returns the prefixes of names that follow from the content of a definition.
    pub fn content_prefixes(self) -> impl Iterator<Item = &'static str> + 't {
        self.0.iter().filter_map(|dialect| match dialect.identity {
            Identity::ByContent { prefix } => Some(prefix),
            Identity::ByName => None,
        })
    }

    /// Returns the dialect that a document has the shape of.
    pub(crate) fn shape_of(self, root: &Node) -> Option<Dialect> {
        self.0.iter().copied().find(|dialect| (dialect.has_shape)(root))
    }

    /// Finds the dialect of a document by its shape, and reports when there is none that can be compiled.
    pub(crate) fn detect(self, root: &Node, problems: &mut Problems) -> Option<Dialect> {
        let found = self.shape_of(root);
        let (code, message) = match found {
            Some(Dialect { compiler: Some(_), .. }) => return found,
            Some(Dialect { name, .. }) => {
                ("E0006", format!("this is a definition of the dialect `{name}`, which is not supported yet"))
            }
            None => ("E0005", format!("this is not a definition: {} without steps", root.noun())),
        };
        let hint = self.supported().map(|dialect| dialect.shape).collect::<Vec<_>>().join("; ");
        problems.add(code, &(root.at.start..root.at.start), message, hint);
        found
    }
}

impl Dialect {
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the builtin dialect of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Dialect> {
        Dialects::builtin().named(name)
    }

    #[must_use]
    pub fn identity(self) -> Identity {
        self.identity
    }

    /// Returns whether definitions never change.
    #[must_use]
    pub fn is_immutable(self) -> bool {
        match self.identity {
            Identity::ByContent { .. } => true,
            Identity::ByName => false,
        }
    }

    #[must_use]
    pub fn view(self) -> &'static DialectView {
        self.view
    }

    /// Returns the JSON Schema (2020-12) for editors; `None` for a dialect that is not supported yet.
    #[must_use]
    pub fn schema(self) -> Option<Value> {
        self.compiler.map(|compiler| (compiler.schema)())
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialect").field(&self.name).finish()
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Returns whether the document, or the `spec` in it, has the key.
pub(crate) fn has_key(root: &Node, key: &str) -> bool {
    let inner = root.get("spec").filter(|spec| spec.is_map()).unwrap_or(root);
    root.get(key).is_some() || inner.get(key).is_some()
}
