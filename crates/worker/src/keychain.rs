//! The keychain of a pipeline: its entries are resolved in their order before the first task, so that an entry that
//! cannot be resolved fails the step before it has any effect.

use crate::failure::{self, failure, invalid};
use crate::halt::Halt;
use crate::keeper::{text_bytes, variable_handle};
use crate::pipeline::{Call, execution_id};
use crate::tools::{self, ToolContext};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use windlass_expr::{Scope, Template};
use windlass_protocol::{Failure, Key, KeyScope, KeySource, Provider, Work, codes};
use windlass_secrets::{Zeroizing, is_public_field};

/// Maximum number of tokens of a tenant that are cached; those that expire first are dropped and fetched again.
const TOKENS_MAX: usize = 1_024;

/// Maximum bytes of all cached tokens of a tenant: a kilobyte for each.
const TOKENS_BYTES_MAX: usize = 1024 * 1024;

/// Maximum bytes of the response of a token endpoint. It is cached as long as the token is valid.
const GRANT_MAX: usize = 64 * 1024;

/// Time before its expiry at which a token is no longer used, because of latency and clock differences.
const EARLY: Duration = Duration::from_secs(30);

/// Lifetime of a token whose response has none.
const UNSAID: Duration = Duration::from_secs(300);

/// Key of the context with the reason for which the keychain of the first step could not be resolved. It is durable,
/// and every worker reads it.
pub(crate) const LOCKED: &str = "keychain_error";

type Fields = Map<String, Value>;
/// Values of secrets by their handles.
type Opened<'h> = BTreeMap<&'h str, Zeroizing<String>>;

/// Resolves all entries, and returns them by name as templates see them.
pub(crate) async fn resolve(
    keys: &[Key],
    work: &Work,
    cx: &ToolContext,
    halt: &Halt,
) -> Result<Fields, Box<Failure>> {
    let mut chain = Fields::new();
    for key in keys {
        let maker = Maker { key, seen: Seen { work, chain: &chain }, cx };
        let fields = maker.made(halt).await.map_err(|failure| named(failure, key))?;
        cx.kit.keeper.learn(secrets(&fields)).map_err(|failure| named(failure, key))?;
        chain.insert(key.name.clone(), Value::Object(fields));
    }
    Ok(chain)
}

/// Returns the failure of a step after the one that could not resolve the keychain.
pub(crate) fn locked(why: &Value) -> Box<Failure> {
    let why = why.as_str().unwrap_or_default();
    failure(codes::KEYCHAIN_UNRESOLVED, format!("the keychain is not resolved, so no step runs: {why}"))
}

/// Parses a stored text: the fields of a JSON object, or the text itself.
pub(crate) fn stored(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(fields @ Value::Object(_)) => fields,
        _ => json!(text),
    }
}

/// Returns the fields of a plain text, which is a token.
fn credential(text: &str) -> Fields {
    match stored(text) {
        Value::Object(fields) => fields,
        text => ["token", "value"]
            .map(|key| (key.to_owned(), text.clone()))
            .into_iter()
            .chain([("type".to_owned(), json!("bearer"))])
            .collect(),
    }
}

struct Maker<'m> {
    key: &'m Key,
    seen: Seen<'m>,
    cx: &'m ToolContext,
}

impl Maker<'_> {
    async fn made(&self, halt: &Halt) -> Result<Fields, Box<Failure>> {
        match &self.key.source {
            KeySource::Fields { fields } => self.fields(fields).await,
            KeySource::Secret { provider, name } => {
                let text = self.open(*provider, name).await?;
                Ok(credential(&text))
            }
            KeySource::Named { provider, fields } => {
                let mut opened = Fields::new();
                for (field, name) in fields {
                    opened.insert(field.clone(), json!(*self.open(*provider, name).await?));
                }
                Ok(opened)
            }
            KeySource::Bound { provider, fields } => {
                let mut opened = Fields::new();
                for (field, name) in fields {
                    let name = self.rendered("the name of a secret", name)?;
                    if !name.is_null() {
                        opened.insert(field.clone(), json!(*self.open_named(*provider, &name).await?));
                    }
                }
                Ok(opened)
            }
            KeySource::OAuth2 { .. } => self.token(halt).await,
        }
    }

    async fn open(&self, provider: Provider, name: &Value) -> Result<Zeroizing<String>, Box<Failure>> {
        let rendered = self.rendered("the name of a secret", name)?;
        self.open_named(provider, &rendered).await
    }

    async fn open_named(
        &self,
        provider: Provider,
        rendered: &Value,
    ) -> Result<Zeroizing<String>, Box<Failure>> {
        let Some(name) = rendered.as_str().filter(|name| !name.is_empty()) else {
            return Err(invalid(format!("the name of a secret is a text, not {rendered}")));
        };
        match provider {
            Provider::Windlass => self.cx.open(name).await,
            Provider::Env => self.cx.open(&variable_handle(name)).await,
        }
    }

    /// Opens handles anywhere in an entry: the definition put them there.
    async fn fields(&self, fields: &Fields) -> Result<Fields, Box<Failure>> {
        let mut opened = BTreeMap::new();
        for handle in fields.values().flat_map(handles) {
            opened.insert(handle, self.cx.open(handle).await?);
        }
        let field = |(name, value): (&String, &Value)| Ok((name.clone(), self.field(name, value, &opened)?));
        fields.iter().map(field).collect()
    }

    fn field(&self, name: &str, value: &Value, opened: &Opened<'_>) -> Result<Value, Box<Failure>> {
        if let Some(handle) = windlass_artifact::secret(value) {
            return Ok(opened.get(handle).map_or(Value::Null, |value| json!(**value)));
        }
        match value {
            Value::Object(fields) => {
                let field =
                    |(name, value): (&String, &Value)| Ok((name.clone(), self.field(name, value, opened)?));
                fields.iter().map(field).collect::<Result<Fields, _>>().map(Value::Object)
            }
            Value::Array(items) => items.iter().map(|item| self.field(name, item, opened)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.rendered(&format!("`{name}`"), value)
            }
        }
    }

    fn rendered(&self, place: &str, value: &Value) -> Result<Value, Box<Failure>> {
        let place = format!("{place} of keychain entry `{}`", self.key.name);
        let template =
            Template::compile(value).map_err(|error| failure::expression(&place, value, &error))?;
        template.render(&self.seen).map_err(|error| failure::expression(&place, value, &error))
    }

    async fn token(&self, halt: &Halt) -> Result<Fields, Box<Failure>> {
        let KeySource::OAuth2 { endpoint, method, headers, data, auto_renew } = &self.key.source else {
            return Ok(Fields::new());
        };
        let owner = self.owner();
        match self.cx.kit.tokens.get(&owner) {
            Some(Kept::Good(fields)) => return Ok(fields),
            Some(Kept::Over) if !auto_renew => return Err(over()),
            Some(Kept::Over) | None => {}
        }
        let mut config = Map::from_iter([
            ("url".to_owned(), self.rendered("`endpoint`", endpoint)?),
            ("method".to_owned(), json!(method)),
            ("headers".to_owned(), Value::Object(self.fields(headers).await?)),
        ]);
        let data = self.fields(data).await?;
        self.cx.kit.keeper.learn(secrets(&data))?;
        config.insert(if method == "GET" { "params" } else { "form" }.to_owned(), Value::Object(data));
        let call = Call {
            label: format!("keychain {}", self.key.name),
            kind: "http".to_owned(),
            config,
            args: Value::Null,
            timeout_ms: None,
            try_number: 1,
            number: 0,
            memo: None,
        };
        let answer = tools::call(&call, self.cx, halt.clone()).await.outcome?;
        let fields = granted(&answer["data"])?;
        // A value that cannot be redacted is not cached either.
        self.cx.kit.keeper.learn(secrets(&fields))?;
        self.cx.kit.tokens.put(owner, fields.clone(), lives(&fields));
        Ok(fields)
    }

    fn owner(&self) -> Owner {
        let of = match self.key.scope {
            KeyScope::Execution => execution_id(self.seen.work),
            KeyScope::Playbook => {
                // Another tenant may have a playbook of the same name, and this tenant may have one, too.
                let Work { tenant, workflow, .. } = self.seen.work;
                let playbook = workflow.as_deref().unwrap_or(&self.key.playbook);
                format!("{tenant} playbook {playbook}")
            }
        };
        (of, self.key.name.clone())
    }
}

/// Finds handles anywhere in a value.
fn handles(value: &Value) -> Vec<&str> {
    if let Some(handle) = windlass_artifact::secret(value) {
        return vec![handle];
    }
    match value {
        Value::Object(fields) => fields.values().flat_map(handles).collect(),
        Value::Array(items) => items.iter().flat_map(handles).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns the response of the server, with the token under its usual name.
fn granted(answer: &Value) -> Result<Fields, Box<Failure>> {
    let fields = answer.as_object();
    let token = fields.and_then(|fields| {
        ["access_token", "token", "id_token"].iter().find_map(|key| fields.get(*key)?.as_str())
    });
    let (Some(fields), Some(token)) = (fields, token) else {
        return Err(failure(
            codes::AUTHENTICATION_FAILED,
            "the answer of the token endpoint has no `access_token`",
        ));
    };
    if text_bytes(answer) > GRANT_MAX {
        let message = format!("the answer of the token endpoint has more than {GRANT_MAX} bytes of text");
        return Err(failure(codes::RESPONSE_TOO_LARGE, message));
    }
    let mut granted = fields.clone();
    granted.insert("token".to_owned(), json!(token));
    granted.insert("type".to_owned(), json!("bearer"));
    Ok(granted)
}

fn lives(fields: &Fields) -> Duration {
    let said =
        fields.get("expires_in").and_then(|said| said.as_f64().or_else(|| said.as_str()?.parse().ok()));
    let said = said.filter(|seconds| *seconds > 0.0).map(Duration::try_from_secs_f64);
    said.and_then(Result::ok).unwrap_or(UNSAID).saturating_sub(EARLY)
}

fn over() -> Box<Failure> {
    failure(codes::AUTHENTICATION_FAILED, "its token has expired, and `auto_renew` is false")
}

fn named(mut failure: Box<Failure>, key: &Key) -> Box<Failure> {
    failure.message = format!("keychain entry `{}`: {}", key.name, failure.message);
    failure
}

/// Collects the texts of an entry that must be redacted.
fn secrets(fields: &Fields) -> Vec<Zeroizing<String>> {
    let mut found = Vec::new();
    let mut open: Vec<(&str, &Value)> = fields.iter().map(|(key, value)| (key.as_str(), value)).collect();
    while let Some((key, value)) = open.pop() {
        match value {
            Value::String(text) if !is_public_field(key) && key != "token_type" => {
                found.push(Zeroizing::new(text.clone()));
            }
            Value::Number(number) if !is_public_field(key) && key != "expires_in" => {
                found.push(Zeroizing::new(number.to_string()));
            }
            Value::Object(fields) => open.extend(fields.iter().map(|(key, value)| (key.as_str(), value))),
            Value::Array(items) => open.extend(items.iter().map(|item| (key, item))),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
        }
    }
    found
}

/// Names that templates of an entry can read.
struct Seen<'s> {
    work: &'s Work,
    chain: &'s Fields,
}

impl Scope for Seen<'_> {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        match (root, key) {
            ("workload", Some(key)) => self.work.scope.workload.get(key).map(Cow::Borrowed),
            ("workload", None) => Some(Cow::Borrowed(&*self.work.scope.workload)),
            ("keychain", Some(entry)) => self.chain.get(entry).map(Cow::Borrowed),
            ("keychain", None) => Some(Cow::Owned(Value::Object(self.chain.clone()))),
            ("execution_id", None) => Some(Cow::Owned(json!(execution_id(self.work)))),
            _ => None,
        }
    }
}

/// Tokens that were fetched for one tenant, until they expire. Another process fetches its own.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<BTreeMap<Owner, Token>>);

/// Key of a token: execution or playbook, and the entry.
type Owner = (String, String);

struct Token {
    fields: Fields,
    until: Instant,
}

impl Token {
    fn bytes(&self) -> usize {
        self.fields.iter().map(|(key, field)| key.len() + text_bytes(field)).sum()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.fields.values_mut().for_each(forget);
    }
}

/// Overwrites all texts.
fn forget(value: &mut Value) {
    match value {
        Value::String(text) => drop(Zeroizing::new(std::mem::take(text))),
        Value::Array(items) => items.iter_mut().for_each(forget),
        Value::Object(fields) => fields.values_mut().for_each(forget),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

enum Kept {
    Good(Fields),
    Over,
}

impl Tokens {
    fn get(&self, owner: &Owner) -> Option<Kept> {
        let tokens = self.lock();
        let token = tokens.get(owner)?;
        Some(if Instant::now() < token.until { Kept::Good(token.fields.clone()) } else { Kept::Over })
    }

    fn put(&self, owner: Owner, fields: Fields, lives: Duration) {
        let mut tokens = self.lock();
        tokens.insert(owner, Token { fields, until: Instant::now() + lives });
        let mut bytes: usize = tokens.values().map(Token::bytes).sum();
        while tokens.len() > TOKENS_MAX || bytes > TOKENS_BYTES_MAX {
            let first = tokens.iter().min_by_key(|(_, token)| token.until).map(|(owner, _)| owner.clone());
            let Some(evicted) = first.and_then(|first| tokens.remove(&first)) else { break };
            bytes -= evicted.bytes();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Owner, Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(tokens: &Tokens, number: usize, bytes: usize) {
        let fields = Fields::from_iter([("token".to_owned(), json!("x".repeat(bytes)))]);
        let lives = Duration::from_secs(60 + number as u64);
        tokens.put((number.to_string(), "api".to_owned()), fields, lives);
    }

    fn kept(tokens: &Tokens, number: usize) -> bool {
        tokens.get(&(number.to_string(), "api".to_owned())).is_some()
    }

    #[test]
    fn tokens_are_bounded_in_number_and_size_and_those_that_end_first_are_evicted() {
        let many = Tokens::default();
        (0..=TOKENS_MAX).for_each(|number| put(&many, number, 8));
        assert!(many.lock().len() == TOKENS_MAX && !kept(&many, 0) && kept(&many, TOKENS_MAX));
        let large = Tokens::default();
        (0..100).for_each(|number| put(&large, number, GRANT_MAX));
        assert!(large.lock().values().map(Token::bytes).sum::<usize>() <= TOKENS_BYTES_MAX);
        assert!(kept(&large, 99) && !kept(&large, 0));
    }

    #[test]
    fn a_grant_that_is_too_large_is_refused() {
        let answer = json!({ "access_token": "granted", "scope": "x".repeat(GRANT_MAX) });
        assert_eq!(granted(&answer).unwrap_err().code, "RESPONSE_TOO_LARGE");
        assert!(granted(&json!({ "access_token": "granted" })).is_ok());
    }
}
