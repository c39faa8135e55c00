//! Huge pages of memory. The allocator reserves memory in large pieces of which it uses a part; with pages of 2 MiB
//! the rest of a page counts as used, about 50 MB in an idle server.

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use std::sync::OnceLock;

/// Asks the system for small pages only, once, and returns whether the process could get huge pages before. Programs of steps
/// get them as before.
pub fn avoid() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        transparent_huge_pages_are_disabled().is_ok_and(|disabled| !disabled)
            && disable_transparent_huge_pages(true).is_ok()
    })
}
