//! What programs of steps inherit. The process that starts them may have a stricter file mode mask and a higher limit on open
//! files than it was started with; neither is meant for them.

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

/// The line that opens the gate of a program: the mask and the limit, `-` for what the program gets as it is.
pub(crate) fn gate_line() -> String {
    let Some(inherited) = INHERITED.get() else { return "- -\n".to_owned() };
    let files = inherited.open_files.map_or_else(|| "-".to_owned(), |files| files.to_string());
    format!("{:04o} {files}\n", inherited.umask)
}
