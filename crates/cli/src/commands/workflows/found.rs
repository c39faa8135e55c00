//! A workflow by what people type: its id, or its name.

use crate::exit::Usage;
use crate::place::{Client, called};

/// Of several workflows of one name, so many are told.
const NAMED_MAX: usize = 3;

/// The id of the one workflow that a text names.
pub fn find(api: &Client, text: &str) -> anyhow::Result<String> {
    let found = called(api, text)?;
    match &found[..] {
        [id] => Ok(id.clone()),
        [] => {
            let hint = format!("`windlass workflows list{}` shows them", api.flag());
            Err(Usage::new(format!("there is no workflow `{text}`")).hint(hint).into())
        }
        several => {
            let named = several.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if several.len() > NAMED_MAX { ", …" } else { "" };
            let what = format!("{} workflows are called `{text}`: {named}{more}", several.len());
            Err(Usage::new(what).hint("give the id of the one you mean").into())
        }
    }
}
