//! Normalises output: removes what differs between any two runs, such as ids, times, durations and users.

use serde_json::Value;
use std::collections::BTreeMap;

/// Fields that only a server returns; the last one exists only in a folder.
const SERVERS_ONLY: [&str; 3] = ["links", "estimatedCompletion", "keyId"];
/// Fields with the user: in a folder its owner, at a server a user of the API.
const WHO: [&str; 4] = ["triggeredBy", "triggerType", "by", "trigger"];
const TOOK: &str = "duration";
const PREFIXES: [&str; 5] = ["exec_", "wf_", "sch_", "act_", "pl_"];

#[derive(Debug, Default)]
pub struct Normal {
    /// Ids in the order in which they were seen.
    ids: BTreeMap<String, String>,
}

impl Normal {
    /// Each line of JSON, or the text.
    pub fn text(&mut self, text: &str) -> String {
        let lines = text.lines().map(|line| match serde_json::from_str::<Value>(line) {
            Ok(value) if !value.is_string() => serde_json::to_string_pretty(&self.value(value)).unwrap(),
            _ => self.words(line),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Object(object) => {
                let kept = object.into_iter().filter(|(key, _)| !SERVERS_ONLY.contains(&key.as_str()));
                let output = kept.map(|(key, value)| {
                    let value = match key.as_str() {
                        key if WHO.contains(&key) => Value::from("who"),
                        TOOK if value.is_number() => Value::from("took"),
                        // Folders have different keys.
                        "completionToken" if value.is_string() => Value::from("token"),
                        _ => self.value(value),
                    };
                    (self.words(&key), value)
                });
                Value::Object(output.collect())
            }
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::String(text) => Value::from(self.words(&text)),
            Value::Number(number) if number.as_u64().is_some_and(|number| number > 1_000_000_000_000) => {
                Value::from("time")
            }
            other => other,
        }
    }

    fn words(&mut self, text: &str) -> String {
        let words = text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "_:.-".contains(c)));
        let words: Vec<&str> = words.collect();
        let is_unit = |word: Option<&&str>| word.is_some_and(|word| ["ms", "s"].contains(&trimmed(word)));
        let normal = words.iter().enumerate().map(|(at, word)| match trimmed(word).parse::<f64>() {
            Ok(_) if is_unit(words.get(at + 1)) => "took ".to_owned(),
            _ => self.word(word),
        });
        normal.collect()
    }

    fn word(&mut self, word: &str) -> String {
        let body = trimmed(word);
        let rest = &word[body.len()..];
        if body == "owner" || body.starts_with("user_") {
            return format!("who{rest}");
        }
        let digits = PREFIXES.iter().find_map(|prefix| body.strip_prefix(prefix)).unwrap_or(body);
        let is_id = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id {
            let next = format!("id-{}", self.ids.len());
            return format!("{}{rest}", self.ids.entry(digits.to_owned()).or_insert(next));
        }
        let is_time = body.len() == 24 && body.ends_with('Z') && body.as_bytes()[10] == b'T';
        if is_time { format!("time{rest}") } else { word.to_owned() }
    }
}

fn trimmed(word: &str) -> &str {
    word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}
