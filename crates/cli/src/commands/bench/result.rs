//! The result of a benchmark, as JSON and as a table.

use super::figures::rounded;
use super::trace::Findings;
use super::verify::Verified;
use super::watched::Tally;
use super::{Site, machine};
use anyhow::bail;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Parts of the JSON object that are not figures.
const PARTS: [&str; 5] = ["conditions", "counts", "trace", "verified", "machine"];

#[derive(Debug)]
pub struct BenchResult {
    pub name: &'static str,
    figures: Map<String, Value>,
    conditions: Map<String, Value>,
    counts: Map<String, Value>,
    trace: Option<Value>,
    verified: bool,
    machine: Value,
}

impl BenchResult {
    pub fn new(name: &'static str, site: &Site<'_>) -> BenchResult {
        BenchResult {
            name,
            figures: Map::new(),
            conditions: Map::new(),
            counts: Map::new(),
            trace: None,
            verified: false,
            machine: machine::describe(site.folder),
        }
    }

    #[must_use]
    pub fn figure(mut self, name: &str, value: f64) -> BenchResult {
        self.figures.insert(name.to_owned(), rounded(value));
        self
    }

    #[must_use]
    pub fn condition(mut self, name: &str, value: impl Into<Value>) -> BenchResult {
        self.conditions.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn count(mut self, name: &str, value: impl Into<Value>) -> BenchResult {
        self.counts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the bytes and syncs on the disk.
    #[must_use]
    pub fn counted(self, tally: &Tally) -> BenchResult {
        let batches = tally.batches.load(Ordering::Relaxed);
        let commits = tally.commits.load(Ordering::Relaxed);
        let per_batch = commits as f64 / batches.max(1) as f64;
        self.count("commits", commits)
            .count("records", tally.records.load(Ordering::Relaxed))
            .count("syncs", batches)
            .count("commits_per_sync", rounded(per_batch))
    }

    /// Adds the findings of a trace. A run in which an answer came too early has no figures.
    pub fn traced(mut self, findings: &Findings) -> anyhow::Result<BenchResult> {
        if findings.violations > 0 {
            let described = findings.described.join("\n");
            bail!(
                "{} of {} answers were given before their facts were on disk:\n{described}",
                findings.violations,
                findings.checked
            );
        }
        self.trace = Some(json!({
            "answers_checked": findings.checked,
            "violations": findings.violations,
            "batches": findings.batches,
        }));
        Ok(self)
    }

    #[must_use]
    pub fn verified(mut self, verified: &Verified) -> BenchResult {
        self.verified = true;
        self.count("verified_executions", verified.executions)
            .count("verified_steps", verified.steps)
            .count("verified_records", verified.records)
    }

    /// Adds the number of checked runs of schedules, which have no journals.
    #[must_use]
    pub fn counted_runs(mut self, runs: usize) -> BenchResult {
        self.verified = true;
        self.count("verified_runs", runs)
    }

    pub fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("bench".into(), self.name.into());
        object.extend(self.figures.clone());
        object.insert("verified".into(), self.verified.into());
        object.insert("conditions".into(), self.conditions.clone().into());
        object.insert("counts".into(), self.counts.clone().into());
        if let Some(trace) = &self.trace {
            object.insert("trace".into(), trace.clone());
        }
        object.insert("machine".into(), self.machine.clone());
        object.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        object
            .insert("date".into(), jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        object.into()
    }

    pub fn table(&self) -> String {
        let mut text = format!("{}\n", self.name);
        for (name, value) in &self.figures {
            let _ = writeln!(text, "  {name:<26} {:>14}", grouped(value));
        }
        let object = self.json();
        for part in PARTS {
            match &object[part] {
                Value::Null => {}
                Value::Object(fields) if fields.is_empty() => {}
                Value::Object(fields) => {
                    let fields: Vec<_> =
                        fields.iter().map(|(name, value)| format!("{name} {}", grouped(value))).collect();
                    let _ = writeln!(text, "  {part}: {}", fields.join(", "));
                }
                Value::Bool(true) => {
                    text.push_str("  verified: every journal replayed, every step counted\n")
                }
                _ => text.push_str("  NOT VERIFIED\n"),
            }
        }
        text
    }
}

/// Formats a number with groups of thousands: 31,234.
fn grouped(value: &Value) -> String {
    let Some(number) = value.as_i64() else {
        return value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    };
    let digits = number.unsigned_abs().to_string();
    let sign = if number < 0 { "-" } else { "" };
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let check = |value: Value, expected: &str| assert_eq!(grouped(&value), expected);
        check(json!(7), "7");
        check(json!(123), "123");
        check(json!(1_234), "1,234");
        check(json!(31_234_567), "31,234,567");
        check(json!(-1_000), "-1,000");
        check(json!(0.25), "0.25");
        check(json!("ext4"), "ext4");
    }
}
