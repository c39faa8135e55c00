//! Secrets of a node: handles take their place, and literals move into the encrypted store.

use super::Maker;
use crate::document::Node;
use crate::playbook::keychain::handle;
use crate::read::first_line;
use crate::source::{Written, named};
use serde_json::{Map, Value, json};
use windlass_artifact::SECRET;
use windlass_protocol::{Key, KeyScope, KeySource, Provider};
use windlass_secrets::check_value;

impl Maker<'_, '_, '_> {
    /// Returns the template that reads the value of a field.
    pub(super) fn secret(&mut self, field: &str, node: &Node) -> Value {
        if let Some(name) = handle(node) {
            return self.of_handle(field, name.to_owned());
        }
        let Some(text) = node.text() else { return node.json() };
        if text.contains("{{") || text.contains("{%") {
            return node.json();
        }
        if let Err(refused) = check_value(text) {
            let hint = "write `{{ NAME }}`, the name of a stored secret".to_owned();
            self.reader.error(
                "E0131",
                &first_line(node),
                format!("`{field}` of {}: {refused}", self.what),
                hint,
            );
            return Value::Null;
        }
        let secret = named(self.reader.marks, &format!("{}/{field}", self.place), text);
        let message = format!("`{field}` of {} is written into the definition", self.what);
        let hint = format!(
            "it moves into the encrypted store as `{secret}`; store it yourself with `windlass secrets set NAME` and \
             write `{{{{ NAME }}}}`"
        );
        self.reader.error("W0231", &node.at, message, hint);
        self.written.push(Written { at: node.at.clone(), secret: secret.clone(), value: text.to_owned() });
        self.of_handle(field, secret)
    }

    fn of_handle(&mut self, field: &str, secret: String) -> Value {
        let fields = Map::from_iter([("value".to_owned(), json!({ SECRET: secret }))]);
        self.keychain.push(key(field, KeySource::Fields { fields }));
        json!(format!("{{{{ keychain.{field}.value }}}}"))
    }
}

fn key(name: &str, source: KeySource) -> Key {
    Key { name: name.to_owned(), playbook: String::new(), scope: KeyScope::Execution, source }
}

/// Returns a stored secret under the name that templates read it by.
pub(in crate::workflow) fn stored(name: &str, secret: &str) -> Key {
    let fields = Map::from_iter([("value".to_owned(), json!(secret))]);
    key(name, KeySource::Named { provider: Provider::Windlass, fields })
}
