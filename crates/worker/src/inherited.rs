//! What programs of steps inherit. The process that starts them may have a stricter file mode mask and a higher limit on open
//! files than it was started with; neither is meant for them.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use std::io;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    /// File mode mask.
    pub umask: u32,
    /// Soft limit on open files; None: it was not changed.
    pub open_files: Option<u64>,
}

/// The mask and the limit belong to the process, and so does this.
static INHERITED: OnceLock<Inherited> = OnceLock::new();

impl Inherited {
    /// Programs get these from now on. The first one holds.
    pub fn keep(self) {
        let _ = INHERITED.set(self);
    }
}

/// The mask and the limit for a supervisor, `-` for what programs get as it is.
pub(crate) fn described() -> String {
    let Some(inherited) = INHERITED.get() else { return "- -".to_owned() };
    let files = inherited.open_files.map_or_else(|| "-".to_owned(), |files| files.to_string());
    format!("{:04o} {files}", inherited.umask)
}

/// Sets for this process, and so for what it starts, what was described.
pub(crate) fn restore(described: &str) -> io::Result<()> {
    let mut words = described.split(' ');
    if let Some(mask) = words.next().and_then(|mask| u32::from_str_radix(mask, 8).ok()) {
        umask(Mode::from_raw_mode(mask));
    }
    if let Some(files) = words.next().and_then(|files| files.parse().ok()) {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?;
    }
    Ok(())
}
