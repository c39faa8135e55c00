//! Permissions of a data folder: its files are for its owner only, because they contain data of tenants and keys.

use rustix::fs::Mode;
use rustix::process::umask;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::OnceLock;

/// Permissions of a file's group and of all others.
const OTHERS: u32 = 0o077;
/// Prefixes of all names that this program creates in a data folder.
const OWN: [&str; 9] = [
    "lock",
    "windlass.db",
    "windlass.restoring",
    "windlass.toml",
    "artifacts",
    "cache",
    "work",
    "databases",
    "master.key",
];
const OWNER_TOKEN: &str = "owner.token";

static INHERITED: OnceLock<u32> = OnceLock::new();

/// Makes all files and folders that this process creates from now on private to its user. Returns the previous mask,
/// which is right for programs that it runs for users.
pub fn make_private() -> u32 {
    *INHERITED.get_or_init(|| umask(Mode::from_raw_mode(OTHERS)).as_raw_mode())
}

/// Removes the rights of other users from a data folder that an earlier version created. A folder that also has other
/// files belongs to a user: it keeps its mode, and only our files change.
pub(crate) fn tighten(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.mode() & OTHERS == 0 {
        return Ok(());
    }
    let mut is_ours_alone = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        match OWN.iter().any(|own| name.starts_with(own)) || name.starts_with(OWNER_TOKEN) {
            true => restrict(&entry.path())?,
            false => is_ours_alone = false,
        }
    }
    match is_ours_alone {
        true => restrict(folder),
        false => Ok(()),
    }
}

/// Removes the rights of other users from a path. The content of a folder that they may not enter is not checked.
fn restrict(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        // Another process of ours may delete a file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mode = found.mode() & 0o7777;
    if found.is_symlink() || mode & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn loose(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_data_folder_of_an_earlier_version_is_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("windlass.db"), "").unwrap();
        fs::create_dir(at("databases")).unwrap();
        for (name, mode) in [("windlass.db", 0o644), ("databases", 0o755), ("", 0o755)] {
            loose(&at(name), mode);
        }
        tighten(folder.path()).unwrap();
        assert_eq!(
            [mode(&at("windlass.db")), mode(&at("databases")), mode(folder.path())],
            [0o600, 0o700, 0o700]
        );
    }

    #[test]
    fn a_folder_with_other_things_in_it_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("windlass.db"), "").unwrap();
        fs::write(at("thesis.txt"), "").unwrap();
        for (name, mode) in [("windlass.db", 0o644), ("thesis.txt", 0o644), ("", 0o755)] {
            loose(&at(name), mode);
        }
        tighten(folder.path()).unwrap();
        let modes = [mode(&at("windlass.db")), mode(&at("thesis.txt")), mode(folder.path())];
        assert_eq!(modes, [0o600, 0o644, 0o755]);
    }
}
