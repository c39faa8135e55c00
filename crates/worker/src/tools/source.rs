//! Scripts of tools: a text in the definition, or a file of the worker.

use crate::failure::{invalid, shown};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use tokio::task::spawn_blocking;
use windlass_protocol::Failure;

/// Maximum size of a script. A larger file was named by mistake.
const SCRIPT_MAX: u64 = 4 * 1024 * 1024;

/// Name of a text of the definition in tracebacks.
const INLINE: &str = "<code>";

#[derive(Debug, PartialEq)]
pub(super) enum Source {
    Inline(String),
    File(PathBuf),
}

impl Source {
    /// Reads `script` of a tool: a path, or `{uri, source: {type: file}}`, or `{source: {type: inline, code}}`.
    pub(super) fn read(tool: &str, script: &Value, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
        let map = match script {
            Value::String(path) => return file(tool, path, cwd),
            Value::Object(map) => map,
            other => {
                let other = shown(&other.to_string());
                return Err(invalid(format!("`script` of {tool} is a path or a map, not {other}")));
            }
        };
        let from = map.get("source").unwrap_or(&Value::Null);
        let text = |key: &str| from.get(key).or_else(|| map.get(key)).and_then(Value::as_str);
        let kind = text("type").or_else(|| from.as_str());
        match (kind, text("code").or_else(|| text("content")), text("uri").or_else(|| text("path"))) {
            (None | Some("inline"), Some(code), None) => Ok(Source::Inline(code.to_owned())),
            (None | Some("file"), None, Some(path)) => file(tool, path, cwd),
            (Some(kind), _, _) if !["inline", "file"].contains(&kind) => Err(invalid(format!(
                "`script` of {tool} comes from a `file` or is `inline`, not from `{}`; fetch it in a step before",
                shown(kind)
            ))),
            _ => {
                Err(invalid(format!("`script` of {tool} needs `uri`, the path of a file, or inline `code`")))
            }
        }
    }

    pub(super) fn into_file(self) -> Option<PathBuf> {
        match self {
            Source::Inline(_) => None,
            Source::File(path) => Some(path),
        }
    }

    /// Returns the name in tracebacks.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Inline(_) => INLINE.to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// Loads the text of the script.
    pub(super) async fn text(&self, tool: &str) -> Result<String, Box<Failure>> {
        let path = match self {
            Source::Inline(code) => return Ok(code.clone()),
            Source::File(path) => path.clone(),
        };
        let shown = path.display().to_string();
        let refused = |why: String| invalid(format!("`script` of {tool}, `{shown}`, {why}"));
        let read = blocking(move || match fs::metadata(&path)?.is_file() {
            true => bounded(File::open(&path)?, SCRIPT_MAX).map(Some),
            false => Ok(None),
        });
        let bytes = match read.await {
            Err(error) => return Err(refused(format!("cannot be read: {error}"))),
            Ok(None) => return Err(refused("is no file".to_owned())),
            Ok(Some(bytes)) => bytes,
        };
        if bytes.len() as u64 > SCRIPT_MAX {
            return Err(refused(format!("is larger than {SCRIPT_MAX} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| refused("is no UTF-8 text".to_owned()))
    }
}

fn file(tool: &str, uri: &str, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    if path.is_empty() || path.contains("://") {
        let uri = shown(uri);
        return Err(invalid(format!(
            "`script` of {tool} is the path of a file, not `{uri}`; fetch it in a step before"
        )));
    }
    Ok(Source::File(cwd.map(PathBuf::from).unwrap_or_default().join(path)))
}

/// Reads one byte more than allowed, which shows that the file is too large.
pub(super) fn bounded(file: File, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Runs work on another thread: the pool has only one, and a slow disk must not delay other units.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
