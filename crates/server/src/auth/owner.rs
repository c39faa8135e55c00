//! The owner's token of a data folder, created at the first start in a file with mode 0600.

use super::Token;
use anyhow::{Context, bail};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use windlass_secrets::Zeroizing;

pub const OWNER_FILE: &str = "owner.token";
/// Maximum size of the file; a larger one is not a token.
const FILE_MAX: u64 = 1_000;

/// Returns the token in the folder, created if there is none. An existing file is never overwritten.
pub(crate) fn owner_token(folder: &Path) -> anyhow::Result<(Token, PathBuf)> {
    let path = folder.join(OWNER_FILE);
    let token = match read(&path)? {
        Some(token) => token,
        None => create(folder, &path)?,
    };
    Ok((token, path))
}

fn read(path: &Path) -> anyhow::Result<Option<Token>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_MAX)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    match Token::read(text.trim()) {
        Some(token) => Ok(Some(token)),
        None => bail!(
            "{} does not contain a token\n  hint: move the file away; the next start creates a new one",
            path.display()
        ),
    }
}

/// Writes a temporary file and links it, so that the file is never seen half written.
fn create(folder: &Path, path: &Path) -> anyhow::Result<Token> {
    let token = Token::random().context("the system returned no random bytes")?;
    let temporary = folder.join(format!("{OWNER_FILE}.{}", std::process::id()));
    let written = write(&temporary, token.text()).and_then(|()| match std::fs::hard_link(&temporary, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = std::fs::remove_file(&temporary);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("cannot sync the data folder")?;
    read(path)?.context("the file with the owner's token was removed while it was created; retry")
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_file_is_created_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let (made, path) = owner_token(folder.path()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (found, _) = owner_token(folder.path()).unwrap();
        assert_eq!(found.digest(), made.digest());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_file_with_other_content_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OWNER_FILE);
        std::fs::write(&path, "my notes").unwrap();
        let error = owner_token(folder.path()).unwrap_err().to_string();
        assert!(error.contains("does not contain a token") && error.contains("hint"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
    }
}
