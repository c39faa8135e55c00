//! Executions by the ids that people type: with or without the prefix, with dashes, or only a part of it.

use crate::exit::Usage;
use windlass_dialects::view::execution_id;
use windlass_kernel::ExecutionId;
use windlass_store::{Query, Reader};

const PREFIX: &str = "exec_";
const DIGITS: usize = 32;
/// Fewer digits mean too many executions.
const SHORT_MIN: usize = 8;
/// Executions read at a time.
const PAGE: usize = 1_000;
/// Of a part that fits several executions, so many are named.
const NAMED_MAX: usize = 3;

/// The execution that a text names. Ids begin with the time, so those of one minute begin alike: the end of an id is
/// as good a short form as its beginning.
pub fn find(reader: &mut impl Reader, text: &str) -> anyhow::Result<ExecutionId> {
    let digits = digits(text)?;
    if digits.len() < DIGITS {
        return by_part(reader, text, &digits);
    }
    let id = ExecutionId::try_from(digits).map_err(Usage::new)?;
    match reader.load(id)? {
        Some(_) => Ok(id),
        None => Err(unknown(text).into()),
    }
}

fn digits(text: &str) -> Result<String, Usage> {
    let digits = text.strip_prefix(PREFIX).unwrap_or(text).replace('-', "").to_ascii_lowercase();
    let is_id = digits.chars().all(|c| c.is_ascii_hexdigit()) && digits.len() <= DIGITS;
    if !is_id {
        let what = format!("`{text}` is not an execution id: {PREFIX} and {DIGITS} hex digits are expected");
        return Err(Usage::new(what).hint("`windlass executions list` shows the ids"));
    }
    if digits.len() < SHORT_MIN {
        let what = format!("`{text}` is too short: give at least {SHORT_MIN} digits of the id");
        return Err(Usage::new(what));
    }
    Ok(digits)
}

fn unknown(text: &str) -> Usage {
    Usage::new(format!("there is no execution `{text}` in this data folder"))
        .hint("`windlass executions list` shows the ids; another folder is named with --data DIR")
}

fn by_part(reader: &mut impl Reader, text: &str, digits: &str) -> anyhow::Result<ExecutionId> {
    let mut query = Query { limit: PAGE, ..Query::default() };
    let mut found = Vec::new();
    loop {
        let page = reader.list(&query)?;
        for listed in &page {
            let id = listed.execution.to_string();
            if id.starts_with(digits) || id.ends_with(digits) {
                found.push(listed.execution);
            }
        }
        query.before = page.last().map(|listed| listed.execution);
        if page.len() < PAGE {
            break;
        }
    }
    match found[..] {
        [id] => Ok(id),
        [] => Err(unknown(text).into()),
        _ => {
            let named: Vec<String> = found.iter().take(NAMED_MAX).map(|id| execution_id(*id)).collect();
            let more = if found.len() > NAMED_MAX { ", …" } else { "" };
            let what = format!("`{text}` fits {} executions: {}{more}", found.len(), named.join(", "));
            Err(Usage::new(what).hint("give more digits, from the beginning or the end of the id").into())
        }
    }
}
