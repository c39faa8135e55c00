//! Starts the program for every test: in its own folder, without the settings of the user who runs the tests, and not
//! longer than the test runs. Test programs include this module by its path.

mod books;
pub mod jwt;
mod place;
mod program;
mod server;

pub use books::{Books, requests};
pub use place::{Place, playbook, process_of};
pub use program::{CommandOutput, PATIENCE, Running, is_gone, until, windlass};
pub use server::{Server, read_answer};

use std::path::{Path, PathBuf};

/// Every file under a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    // A server that was killed leaves its socket.
    let regular = |path: PathBuf| path.is_file().then_some(path).into_iter().collect();
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { regular(path) }).collect()
}
