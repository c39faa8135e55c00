//! The text of a definition, from a file or from standard input.

use crate::exit::Usage;
use anyhow::Context;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Source {
    pub text: String,
    /// Folder of the file, in which definitions that it starts are searched.
    pub folder: PathBuf,
    /// Name of the source in messages.
    pub shown: String,
}

impl Source {
    /// Reads a file; `-` is standard input.
    pub fn read(file: &Path) -> Result<Source, Usage> {
        let is_stdin = file.as_os_str() == "-";
        let shown = if is_stdin { "<stdin>".to_owned() } else { file.display().to_string() };
        let text = bytes(file, is_stdin)
            .and_then(|bytes| String::from_utf8(bytes).with_context(|| format!("{shown} is not UTF-8 text")));
        match text {
            Ok(text) => Ok(Source { text, folder: folder(file), shown }),
            Err(error) => Err(Usage::new(format!("{error:#}"))),
        }
    }
}

fn folder(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn bytes(file: &Path, is_stdin: bool) -> anyhow::Result<Vec<u8>> {
    if !is_stdin {
        return std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    Ok(bytes)
}
