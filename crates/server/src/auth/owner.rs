//! The owner's token of a data folder: made at the first start, in a file that only its owner reads.

use super::Token;
use anyhow::{Context, bail};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use windlass_secrets::Zeroizing;

pub const OWNER_FILE: &str = "owner.token";
/// A longer file is none of ours.
const FILE_MAX: u64 = 1_000;

/// The token in the folder, made if there is none. One that is there is never overwritten.
pub fn owner_token(folder: &Path) -> anyhow::Result<(Token, PathBuf)> {
    let path = folder.join(OWNER_FILE);
    let token = match read(&path)? {
        Some(token) => token,
        None => make(folder, &path)?,
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
            "{} holds no token of this program\n  hint: move the file away, and the next start makes another one",
            path.display()
        ),
    }
}

/// Written whole beside its place first: whoever finds the file finds all of it.
fn make(folder: &Path, path: &Path) -> anyhow::Result<Token> {
    let token = Token::random().context("the system gives no random bytes")?;
    let beside = folder.join(format!("{OWNER_FILE}.{}", std::process::id()));
    let written = write(&beside, token.text()).and_then(|()| match std::fs::hard_link(&beside, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // The name beside it is not needed any more, whatever came of it.
    let _ = std::fs::remove_file(&beside);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("cannot sync the data folder")?;
    read(path)?.context("the owner's token has gone while it was made")
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
    fn the_file_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (made, path) = owner_token(folder.path()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (found, _) = owner_token(folder.path()).unwrap();
        assert_eq!(found.digest(), made.digest());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(OWNER_FILE);
        std::fs::write(&path, "my notes").unwrap();
        let error = owner_token(folder.path()).unwrap_err().to_string();
        assert!(error.contains("holds no token") && error.contains("hint"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
    }
}
