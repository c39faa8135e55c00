//! The preview of a retry: one or two lines before it starts, and the whole preview for `--dry-run`.

use crate::commands::counted;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use windlass_views::label;

/// Maximum number of lines for one list; the API has all entries.
const LINES_MAX: usize = 40;

fn entries<'p>(preview: &'p Value, list: &str) -> &'p [Value] {
    preview[list].as_array().map_or(&[], Vec::as_slice)
}

fn count(preview: &Value, field: &str) -> usize {
    preview[field].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Names an entry: `measure`, `measure[2]`, or `turn (firing 3)`.
fn name(entry: &Value) -> String {
    let numbers = entry["path"].as_array().into_iter().flatten();
    let path: Vec<u32> = numbers.filter_map(Value::as_u64).filter_map(|n| u32::try_from(n).ok()).collect();
    let label = label(entry["nodeId"].as_str().unwrap_or_default(), &path);
    match entry["firing"].as_u64() {
        Some(firing) if firing > 1 && path.is_empty() => format!("{label} (firing {firing})"),
        _ => label,
    }
}

/// Groups entries by step: `measure ×990`, `check`.
fn group(entries: &[Value]) -> String {
    let mut order = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        let step = entry["nodeId"].as_str().unwrap_or_default();
        let count = counts.entry(step).or_default();
        if *count == 0 {
            order.push(step);
        }
        *count += 1;
    }
    let shown = |step: &&str| match counts[step] {
        1 => (*step).to_owned(),
        count => format!("{step} ×{count}"),
    };
    let mut shown: Vec<String> = order.iter().take(8).map(shown).collect();
    if order.len() > shown.len() {
        shown.push(format!("and {} more", order.len() - shown.len()));
    }
    shown.join(", ")
}

/// Describes a retry in short, before it starts.
pub fn summarize(preview: &Value) -> String {
    let (imports, runs) = (entries(preview, "imports"), entries(preview, "runs"));
    let taken = match count(preview, "importCount") {
        0 => "takes over nothing".to_owned(),
        taken => format!("takes over {}: {}", counted(taken, "completed step"), group(imports)),
    };
    let again = match count(preview, "runCount") {
        0 => "runs nothing again".to_owned(),
        again => format!("runs {} again: {}", counted(again, "step"), group(runs)),
    };
    let risky: Vec<Value> = runs.iter().filter(|run| run["sideEffects"] == true).cloned().collect();
    match risky.is_empty() {
        true => format!("{taken}\n{again}"),
        false => format!("{taken}\n{again}\nwith side effects: {}", group(&risky)),
    }
}

/// Prints a whole preview, within the bound on lines.
pub fn print_whole(preview: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let imports = entries(preview, "imports").iter().map(|entry| {
        let changed = if entry["changed"] == true { "  (its definition changed)" } else { "" };
        format!("{}{changed}", name(entry))
    });
    print_list(&mut out, "taken over", imports, count(preview, "importCount"))?;
    let runs = entries(preview, "runs").iter().map(|entry| format!("{}  {}", name(entry), reason(entry)));
    print_list(&mut out, "runs again", runs, count(preview, "runCount"))?;
    let refused = entries(preview, "refused");
    if !refused.is_empty() {
        let lines = refused.iter().map(|entry| entry["message"].as_str().unwrap_or_default().to_owned());
        print_list(&mut out, "refused", lines, refused.len())?;
    }
    Ok(())
}

fn reason(entry: &Value) -> String {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    let reason = match text("reason") {
        "failed" if entry["childExecutionId"].is_string() => {
            format!("{} continues where it failed", text("childExecutionId"))
        }
        "failed" => "failed".to_owned(),
        "not_finished" => "has not finished".to_owned(),
        "requested" => "named by --from".to_owned(),
        "undone" => "was undone by compensation".to_owned(),
        "follows" => format!("follows {}", text("follows")),
        "changed" => "its definition changed".to_owned(),
        other => other.to_owned(),
    };
    if entry["sideEffects"] == true { format!("{reason}, has side effects") } else { reason }
}

fn print_list(
    out: &mut impl Write,
    title: &str,
    lines: impl Iterator<Item = String>,
    count: usize,
) -> anyhow::Result<()> {
    writeln!(out, "{title}: {count}")?;
    for line in lines.take(LINES_MAX) {
        writeln!(out, "  {line}")?;
    }
    if count > LINES_MAX {
        writeln!(out, "  … {} more; --json lists them", count - LINES_MAX)?;
    }
    Ok(())
}
