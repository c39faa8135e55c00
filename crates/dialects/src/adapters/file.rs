//! An adapters file: YAML or JSON, the bindings of a server or of one command.

use super::{ADAPTERS, Adapters, Outside, parse_section};
use crate::diagnostic::{Diagnostic, Problems};
use crate::document;
use crate::read::Reader;
use crate::source;

/// Name under which tokens of bindings of the file are cached.
const PLACE: &str = "adapters";

/// An adapters file after it was read.
#[derive(Debug)]
pub struct AdaptersFile {
    pub adapters: Adapters,
    /// Sorted by position. The bindings can be used only without an error among them.
    pub diagnostics: Vec<Diagnostic>,
    /// The text with stars in place of the secrets: the form that is shown.
    pub shown: String,
}

impl AdaptersFile {
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads an adapters file. Its content is that of `adapters` in a definition; the key itself may be there, too.
#[must_use]
pub fn parse_adapters(text: &str) -> AdaptersFile {
    let mut problems = Problems::default();
    let root = document::parse(text, &mut problems);
    let (mut adapters, mut written) = (Adapters::default(), Vec::new());
    if let Some(root) = &root {
        let own = Adapters::default();
        let mut reader =
            Reader { source: text, problems: &mut problems, marks: None, own, outside: Outside::Unknown };
        let section = match root.entries() {
            [only] if only.key == ADAPTERS => &only.value,
            _ => root,
        };
        adapters = parse_section(section, PLACE, &[], &mut reader, &mut written);
        for found in &written {
            let message = "an adapters file cannot contain a secret";
            let hint =
                "store it with `windlass secrets set NAME`, and write `{$secret: NAME}` or `kind: secret`";
            problems.add("E0131", &found.at, message, hint.to_owned());
        }
    }
    let diagnostics = problems.into_diagnostics(text, root.as_ref());
    AdaptersFile { adapters, diagnostics, shown: source::shown(text, &written) }
}
