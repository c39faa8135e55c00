//! The adapters file of a server or of a command: read once, and checked before anything starts.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use windlass_dialects::{Adapters, parse_adapters};

/// Maximum size of an adapters file. Larger ones are mistakes: a binding is a few lines.
const FILE_MAX: u64 = 4 << 20;

/// The bindings of a file.
#[derive(Debug, Clone, Default)]
pub struct LoadedAdapters {
    pub adapters: Arc<Adapters>,
    /// Problems that do not keep the file from being used.
    pub warnings: Vec<String>,
}

/// The reason why an adapters file cannot be used, with the place of each problem in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadAdapters(String);

impl fmt::Display for BadAdapters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads an adapters file.
pub fn load_adapters(path: &Path) -> Result<LoadedAdapters, BadAdapters> {
    let shown = path.display().to_string();
    let text = read(path).map_err(|error| BadAdapters(format!("cannot read {shown}: {error}")))?;
    let file = parse_adapters(&text);
    let render = |errors: bool| {
        let found = file.diagnostics.iter().filter(move |one| one.is_error() == errors);
        found.map(|one| one.render(&file.shown, &shown)).collect::<Vec<_>>()
    };
    if !file.is_valid() {
        return Err(BadAdapters(format!("{shown} has errors:\n{}", render(true).concat().trim_end())));
    }
    Ok(LoadedAdapters { warnings: render(false), adapters: Arc::new(file.adapters) })
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 > FILE_MAX {
        true => Err(format!("it is larger than {} MiB", FILE_MAX >> 20)),
        false => Ok(text),
    }
}
