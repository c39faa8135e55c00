//! Attributes that programs of steps inherit. The process that starts them may have a stricter file mode mask, a
//! higher limit on open files and no huge pages; programs get the attributes from before its start.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use rustix::thread::disable_transparent_huge_pages;
use std::io;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    /// File mode mask.
    pub umask: u32,
    /// Soft limit on open files; None if it was not changed.
    pub open_files: Option<u64>,
    /// Whether the system may give huge pages to programs.
    pub huge_pages: bool,
}

const HUGE_PAGES: &str = "huge";

/// The mask and the limit belong to the process, so this is global, too.
static INHERITED: OnceLock<Inherited> = OnceLock::new();

impl Inherited {
    /// Sets the attributes of programs from now on. Only the first call has an effect.
    pub fn keep(self) {
        let _ = INHERITED.set(self);
    }
}

/// Formats the attributes for a supervisor; `-` keeps the inherited value.
pub(crate) fn described() -> String {
    let Some(inherited) = INHERITED.get() else { return "- - -".to_owned() };
    let files = inherited.open_files.map_or_else(|| "-".to_owned(), |files| files.to_string());
    let pages = if inherited.huge_pages { HUGE_PAGES } else { "-" };
    format!("{:04o} {files} {pages}", inherited.umask)
}

/// Applies formatted attributes to this process, and so to the programs that it starts.
pub(crate) fn restore(described: &str) -> io::Result<()> {
    let mut words = described.split(' ');
    if let Some(mask) = words.next().and_then(|mask| u32::from_str_radix(mask, 8).ok()) {
        umask(Mode::from_raw_mode(mask));
    }
    if let Some(files) = words.next().and_then(|files| files.parse().ok()) {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?;
    }
    if words.next() == Some(HUGE_PAGES) {
        disable_transparent_huge_pages(false)?;
    }
    Ok(())
}
