//! The keychain: credentials that are resolved before the first step. It has names only; values are in the encrypted
//! store, and literal ones are returned to be stored there.

mod check;

pub(super) use check::{carried, check};
pub(crate) use check::{check_declared, check_entries, needed};

use super::language::{self, KEYCHAIN, KEYCHAIN_ENTRY, KEYS_BUILT_IN_ELSEWHERE};
use crate::document::{Entry, Kind, Node};
use crate::names;
use crate::read::{Name, Reader, Unknown, first_line};
use crate::source::{Written, named};
use serde_json::{Map, Value, json};
use windlass_artifact::{SECRET, key_of};
use windlass_expr::Read;
use windlass_protocol::{Key, KeyScope, KeySource, Provider};
use windlass_secrets::{check_name, check_value, is_public_field};

#[derive(Debug)]
pub(crate) struct KeyDef {
    pub(crate) name: Name,
    pub(crate) key: Key,
    pub(crate) reads: Vec<Read>,
}

/// Name in the digest of a playbook without one.
const UNNAMED: usize = 24;

type Parse = fn(&Node, &mut Form<'_, '_, '_>) -> Option<KeySource>;

/// Readers of the kinds of entries, in the order of the language's table.
const PARSES: [Parse; KEYCHAIN.len()] =
    [bearer, fixed, basic, api_key, stored, stored, environment, manager, oauth2];

pub(crate) fn keychain(
    node: &Node,
    playbook: &str,
    reader: &mut Reader<'_, '_>,
    written: &mut Vec<Written>,
) -> Vec<KeyDef> {
    let mut found: Vec<KeyDef> = Vec::new();
    for entry in reader.list(node, "`keychain`").unwrap_or_default() {
        let Some(def) = key(entry, playbook, reader, written) else { continue };
        if found.iter().any(|other| other.name.text == def.name.text) {
            let message = format!("keychain entry `{}` is defined twice", def.name.text);
            reader.error("E0112", &def.name.at, message, "rename one".to_owned());
        }
        found.push(def);
    }
    found
}

fn key(
    entry: &Node,
    playbook: &str,
    reader: &mut Reader<'_, '_>,
    written: &mut Vec<Written>,
) -> Option<KeyDef> {
    let entries = reader.map(entry, "a keychain entry")?;
    let Some(name) = entry.get("name") else {
        let message = "a keychain entry has no `name`";
        reader.error("E0102", &first_line(entry), message, "add `name: ...`".to_owned());
        return None;
    };
    let name = reader.name(name, "`name` of a keychain entry")?;
    let (parse, keys) = kind(entry, reader)?;
    let known: Vec<language::Key> = KEYCHAIN_ENTRY.iter().chain(keys).copied().collect();
    reader.known(entries, &format!("keychain entry `{}`", name.text), &known, Unknown::Error);
    let scopes =
        [("local", KeyScope::Execution), ("shared", KeyScope::Playbook), ("global", KeyScope::Playbook)];
    let scope = entry.get("scope").filter(|scope| !scope.is_null());
    let scope = scope.map_or(Some(KeyScope::Execution), |scope| reader.choice(scope, "scope", &scopes))?;
    let mut form =
        Form { reader, written, place: format!("keychain/{playbook}/{}", name.text), reads: Vec::new() };
    let source = parse(entry, &mut form)?;
    let reads = form.reads;
    let key = Key { name: name.text.clone(), playbook: playbook.to_owned(), scope, source };
    Some(KeyDef { name, key, reads })
}

fn kind(entry: &Node, reader: &mut Reader<'_, '_>) -> Option<(Parse, &'static [language::Key])> {
    let known = KEYCHAIN.iter().map(|(kind, _)| *kind);
    let all = format!("known kinds: {}", known.clone().collect::<Vec<_>>().join(", "));
    let Some(node) = entry.get("kind") else {
        reader.error("E0102", &first_line(entry), "a keychain entry has no `kind`", all);
        return None;
    };
    let text = reader.text(node, "`kind` of a keychain entry")?;
    let found = KEYCHAIN.iter().zip(PARSES).find(|((kind, _), _)| *kind == text);
    if found.is_none() && KEYS_BUILT_IN_ELSEWHERE.contains(&text) {
        let message =
            format!("keychain entries of kind `{text}` are not built in, and no binding exists for them");
        let hint = "fetch the token with `kind: oauth2`, or store it with `windlass secrets set NAME` and read it \
                    with `kind: secret`";
        reader.error("E0130", &node.at, message, hint.to_owned());
    } else if found.is_none() {
        let near = names::hint(text, known).filter(|hint| hint.starts_with("did"));
        let hint = near.map_or(all.clone(), |near| format!("{near} {all}"));
        let elsewhere =
            "any other credential is stored with `windlass secrets set NAME` and named by `kind: secret`";
        let message = format!("there is no kind of keychain entry `{text}`");
        reader.error("E0130", &node.at, message, format!("{hint}; {elsewhere}"));
    }
    found.map(|((_, keys), parse)| (parse, *keys))
}

/// One entry while it is read.
struct Form<'f, 's, 'p> {
    reader: &'f mut Reader<'s, 'p>,
    written: &'f mut Vec<Written>,
    /// The name of its secrets, without the field.
    place: String,
    reads: Vec<Read>,
}

impl Form<'_, '_, '_> {
    /// Reads a required field, under its first name.
    fn needed(&mut self, entry: &Node, keys: &[&str]) -> Option<Value> {
        match self.reader.aliased(entry, keys).filter(|node| !node.is_null()) {
            Some(node) => Some(self.field(keys[0], node)),
            None => {
                let (message, hint) =
                    (format!("the keychain entry has no `{}`", keys[0]), format!("add `{}: ...`", keys[0]));
                self.reader.error("E0102", &first_line(entry), message, hint);
                None
            }
        }
    }

    fn fields(&mut self, entry: &Node, key: &str) -> Option<Map<String, Value>> {
        let node = entry.get(key).filter(|node| !node.is_null())?;
        let entries = self.reader.map(node, &format!("`{key}` of a keychain entry"))?;
        Some(entries.iter().map(|Entry { key, value, .. }| (key.clone(), self.field(key, value))).collect())
    }

    /// Reads the value of a field: a template as it is, a handle, or a literal that becomes one.
    fn field(&mut self, path: &str, node: &Node) -> Value {
        if let Some(name) = handle(node) {
            if check_name(name).is_err() {
                let message = format!("`{name}` cannot be the name of a secret");
                self.reader.error("E0131", &first_line(node), message, None);
            }
            return json!({ SECRET: name });
        }
        match &node.kind {
            Kind::Map(entries) => {
                let field = |form: &mut Self, entry: &Entry| {
                    (entry.key.clone(), form.field(&format!("{path}/{}", entry.key), &entry.value))
                };
                Value::Object(entries.iter().map(|entry| field(self, entry)).collect())
            }
            Kind::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.field(&format!("{path}/{index}"), item))
                .collect(),
            Kind::Null | Kind::Bool(_) => node.json(),
            Kind::Text(text) if text.contains("{{") || text.contains("{%") => self.template(node),
            Kind::Text(text) => self.literal(path, node, text.clone()),
            Kind::Number(number) => self.literal(path, node, number.to_string()),
        }
    }

    fn template(&mut self, node: &Node) -> Value {
        let tree =
            self.reader.fields(&[Entry { key: String::new(), at: node.at.clone(), value: node.clone() }]);
        self.reads.extend(tree.reads);
        node.json()
    }

    /// Moves a literal into the store, unless the field is not a secret.
    fn literal(&mut self, path: &str, node: &Node, value: String) -> Value {
        let last = path.rsplit('/').next().unwrap_or(path);
        if is_public_field(last) {
            return node.json();
        }
        if let Err(refused) = check_value(&value) {
            let hint = "write a longer value, or name a stored secret: `{$secret: NAME}`".to_owned();
            self.reader.error(
                "E0131",
                &first_line(node),
                format!("`{last}` of a keychain entry: {refused}"),
                hint,
            );
        }
        let secret = named(self.reader.marks, &format!("{}/{path}", self.place), &value);
        self.written.push(Written { at: node.at.clone(), secret: secret.clone(), value });
        json!({ SECRET: secret })
    }

    /// Reads a plain text that is not a secret.
    fn text(&mut self, node: &Node, what: &str) -> Option<Value> {
        self.reader.text(node, what)?;
        Some(self.template(node))
    }
}

/// Reads `{$secret: NAME}`, which also replaces a literal in the stored text.
pub(crate) fn handle(node: &Node) -> Option<&str> {
    match node.entries() {
        [entry] if entry.key == SECRET => entry.value.text(),
        _ => None,
    }
}

/// Returns a name of a secret made of other names.
pub(crate) fn plain(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_-./".contains(c) { c } else { '-' };
    name.chars().map(allowed).collect()
}

fn bearer(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let token = form.needed(entry, &["token"])?;
    Some(fields([("type", json!("bearer")), ("token", token)]))
}

fn fixed(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    form.needed_map(entry).map(|fields| KeySource::Fields { fields })
}

fn basic(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let username = form.needed(entry, &["username", "user"])?;
    let password = form.needed(entry, &["password"])?;
    Some(fields([("type", json!("basic")), ("username", username), ("password", password)]))
}

fn api_key(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let key = form.needed(entry, &["key", "value", "api_key"])?;
    let mut found = Map::from_iter([("type".to_owned(), json!("api_key")), ("key".to_owned(), key)]);
    for field in ["header", "in"] {
        if let Some(node) = entry.get(field) {
            found.insert(field.to_owned(), form.text(node, &format!("`{field}` of a keychain entry"))?);
        }
    }
    Some(KeySource::Fields { fields: found })
}

/// Reads an entry for a stored secret. Without another name it is the secret with the name of the entry.
fn stored(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let provider = provider(entry, form)?;
    let named = form.reader.aliased(entry, &["secret", "credential"]).or_else(|| entry.get("name"))?;
    let name = form.text(named, "the name of a secret")?;
    Some(KeySource::Secret { provider, name })
}

fn environment(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    if let Some(variable) = entry.get("variable") {
        let name = form.text(variable, "`variable` of a keychain entry")?;
        return Some(KeySource::Secret { provider: Provider::Env, name });
    }
    let fields = form.named_map(entry)?;
    Some(KeySource::Named { provider: Provider::Env, fields })
}

fn manager(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let provider = provider(entry, form)?;
    let fields = form.named_map(entry)?;
    Some(KeySource::Named { provider, fields })
}

fn oauth2(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<KeySource> {
    let endpoint = match form.reader.aliased(entry, &["endpoint", "token_url"]) {
        Some(node) => form.text(node, "`endpoint` of a keychain entry")?,
        None => return form.needed(entry, &["endpoint"]).and(None),
    };
    let method = match entry.get("method") {
        Some(node) => form.reader.choice(node, "method", &[("POST", "POST"), ("GET", "GET")])?,
        None => "POST",
    };
    let auto_renew = match entry.get("auto_renew") {
        Some(node) => form.reader.boolean(node, "`auto_renew`")?,
        None => true,
    };
    let headers = form.fields(entry, "headers").unwrap_or_default();
    let data = form.fields(entry, "data").unwrap_or_default();
    Some(KeySource::OAuth2 { endpoint, method: method.to_owned(), headers, data, auto_renew })
}

impl Form<'_, '_, '_> {
    fn needed_map(&mut self, entry: &Node) -> Option<Map<String, Value>> {
        self.present_map(entry)?;
        self.fields(entry, "map")
    }

    /// Reads fields whose values are names, not secrets.
    fn named_map(&mut self, entry: &Node) -> Option<Map<String, Value>> {
        let node = self.present_map(entry)?;
        let entries = self.reader.map(node, "`map` of a keychain entry")?;
        let mut found = Map::new();
        for Entry { key, value, .. } in entries {
            found.insert(key.clone(), self.text(value, &format!("`{key}` of a keychain entry"))?);
        }
        Some(found)
    }

    fn present_map<'n>(&mut self, entry: &'n Node) -> Option<&'n Node> {
        let found = entry.get("map").filter(|map| !map.is_null());
        if found.is_none() {
            let hint = "add `map: {field: ...}`".to_owned();
            self.reader.error("E0102", &first_line(entry), "the keychain entry has no `map`", hint);
        }
        found
    }
}

fn provider(entry: &Node, form: &mut Form<'_, '_, '_>) -> Option<Provider> {
    let Some(node) = entry.get("provider").filter(|node| !node.is_null()) else {
        return Some(Provider::Windlass);
    };
    match form.reader.text(node, "`provider`")? {
        "windlass" => Some(Provider::Windlass),
        "env" => Some(Provider::Env),
        other => {
            let hint =
                "the providers are `windlass` and `env`: store the value with `windlass secrets set NAME`"
                    .to_owned();
            form.reader.error("E0130", &node.at, format!("there is no provider of secrets `{other}`"), hint);
            None
        }
    }
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> KeySource {
    KeySource::Fields { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

/// Returns the part of a secret's name that names the playbook; one without a name is known by its text.
pub(crate) fn place(name: Option<&str>, source: &str) -> String {
    match name {
        Some(name) => plain(name),
        None => plain(&key_of(source.as_bytes())[..UNNAMED]),
    }
}
