//! Finds definitions in a folder: by the name of a file, else by the names inside of the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use windlass_dialects::{Outside, compile_for};

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Maximum depth of the folders that are searched.
const DEPTH_MAX: usize = 4;
/// Maximum number of files that are read for the name inside of them. A folder with more files has other contents than
/// definitions.
pub(super) const FILES_MAX: usize = 1_000;
/// Maximum size of a definition.
const BYTES_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Search {
    folder: PathBuf,
    /// Files by the names inside of them; built when a name is not that of a file.
    called: Option<Names>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<String, Vec<PathBuf>>,
    /// Whether there were more files than are read.
    cut: bool,
}

#[derive(Debug)]
pub(super) enum Hit {
    One(PathBuf),
    Several(Vec<String>),
    /// `cut`: not every file was searched.
    None {
        cut: bool,
    },
}

impl Search {
    pub(super) fn new(folder: &Path) -> Search {
        Search { folder: folder.to_owned(), called: None }
    }

    pub(super) fn find(&mut self, path: &str) -> Hit {
        if path.is_empty() {
            return Hit::None { cut: false };
        }
        let whole = self.folder.join(path);
        let ended = ENDINGS.iter().map(|ending| self.folder.join(format!("{path}.{ending}")));
        if let Some(file) = [whole].into_iter().chain(ended).find(|file| file.is_file()) {
            return Hit::One(file);
        }
        let folder = self.folder.clone();
        let called = self.called.get_or_insert_with(|| names_in(&folder));
        match called.files.get(path).map(Vec::as_slice) {
            None | Some([]) => Hit::None { cut: called.cut },
            Some([file]) => Hit::One(file.clone()),
            Some(files) => Hit::Several(files.iter().map(|file| file.display().to_string()).collect()),
        }
    }
}

fn names_in(folder: &Path) -> Names {
    let mut files = Vec::new();
    collect(folder, DEPTH_MAX, &mut files);
    let mut called = Names { cut: files.len() > FILES_MAX, ..Names::default() };
    for file in files.into_iter().take(FILES_MAX) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let compiled = compile_for(&text, Outside::Unknown);
        let mut names =
            [compiled.path, compiled.name].map(|name| name.filter(|_| compiled.dialect.is_some()));
        if names[0] == names[1] {
            names[1] = None;
        }
        for name in names.into_iter().flatten() {
            called.files.entry(name).or_default().push(file.clone());
        }
    }
    called
}

/// Lists entries in the order of their names, without hidden ones; one more than the maximum shows that there are more.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if files.len() > FILES_MAX || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, files);
        } else if kind.is_file()
            && ENDINGS.contains(&ending)
            && entry.metadata().is_ok_and(|about| about.len() <= BYTES_MAX)
        {
            files.push(path);
        }
    }
}
