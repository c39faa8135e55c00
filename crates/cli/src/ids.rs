//! Ids of executions as users write them: with or without the prefix, with dashes, a part of one, or `@last`.

use crate::api::{Client, list_executions};
use crate::exit::Usage;
use anyhow::Context;
use serde_json::Value;
use windlass_kernel::ExecutionId;

const PREFIX: &str = "exec_";
const DIGITS: usize = 32;
/// Minimum number of digits; fewer would fit too many executions.
const SHORT_MIN: usize = 8;
/// Maximum number of executions that are listed if a part of an id fits several.
const NAMED_MAX: usize = 3;
/// The newest execution.
const LAST: &str = "@last";
/// Number of executions among which the newest is searched: those that it started are newer.
const LAST_AMONG: usize = 100;
/// Executions that are compared with a part of an id, the newest: ten requests.
const COMPARED_MAX: usize = 1_000;

/// Returns the execution that a text names. Ids begin with the time, so those of one minute begin with the same digits:
/// the end of an id can also be used as its short form.
pub fn find(client: &Client, text: &str) -> anyhow::Result<ExecutionId> {
    if text == LAST {
        return find_last(client);
    }
    let digits = digits(text)?;
    match digits.len() < DIGITS {
        true => find_by_part(client, text, &digits),
        false => Ok(ExecutionId::try_from(digits).map_err(Usage::new)?),
    }
}

/// Returns whether a text has the form of an id, or is `@last`.
pub fn is_id(text: &str) -> bool {
    text == LAST || digits(text).is_ok()
}

/// Parses a whole id.
pub fn parse(text: &str) -> anyhow::Result<ExecutionId> {
    Ok(ExecutionId::try_from(digits(text)?).map_err(Usage::new)?)
}

/// Returns the newest execution that was not started by another one.
fn find_last(client: &Client) -> anyhow::Result<ExecutionId> {
    let (listed, _) = list_executions(client, &[], LAST_AMONG)?;
    let is_own = |execution: &&Value| execution["metadata"]["triggerType"] != "workflow";
    match listed.iter().find(is_own).or(listed.first()) {
        Some(newest) => of_answer(newest),
        None => Err(Usage::new(format!("there is no execution {}", client.place())).into()),
    }
}

/// Returns the execution that an answer of the API is about.
pub fn of_answer(answer: &Value) -> anyhow::Result<ExecutionId> {
    parse(answer["executionId"].as_str().context("the answer has no execution id")?)
}

fn digits(text: &str) -> Result<String, Usage> {
    let digits = text.strip_prefix(PREFIX).unwrap_or(text).replace('-', "").to_ascii_lowercase();
    let is_id = digits.chars().all(|c| c.is_ascii_hexdigit()) && digits.len() <= DIGITS;
    if !is_id {
        let what = format!(
            "`{text}` is not an execution id: {PREFIX} and {DIGITS} hex digits, or {LAST}, are expected"
        );
        return Err(Usage::new(what).hint("`windlass executions list` shows the ids"));
    }
    if digits.len() < SHORT_MIN {
        let what = format!("`{text}` is too short: use at least {SHORT_MIN} digits of the id");
        return Err(Usage::new(what));
    }
    Ok(digits)
}

fn find_by_part(client: &Client, text: &str, digits: &str) -> anyhow::Result<ExecutionId> {
    let (listed, has_more) = list_executions(client, &[], COMPARED_MAX)?;
    let all = listed.iter().filter_map(|execution| execution["executionId"].as_str()?.strip_prefix(PREFIX));
    let found: Vec<&str> = all.filter(|id| id.starts_with(digits) || id.ends_with(digits)).collect();
    match found[..] {
        [id] => Ok(ExecutionId::try_from(id.to_owned()).map_err(Usage::new)?),
        [] => {
            let (place, flag) = (client.place(), client.flag());
            let (among, hint) = match has_more {
                true => (
                    format!(" among the newest {COMPARED_MAX} executions"),
                    format!("an older execution needs its whole id, {PREFIX} and {DIGITS} hex digits"),
                ),
                false => (String::new(), format!("`windlass executions list{flag}` shows the ids")),
            };
            Err(Usage::new(format!("there is no execution `{text}`{among} {place}")).hint(hint).into())
        }
        _ => {
            let named: Vec<String> = found.iter().take(NAMED_MAX).map(|id| format!("{PREFIX}{id}")).collect();
            let more = if found.len() > NAMED_MAX { ", …" } else { "" };
            let what = format!("`{text}` fits {} executions: {}{more}", found.len(), named.join(", "));
            Err(Usage::new(what).hint("use more digits, from the beginning or the end of the id").into())
        }
    }
}
