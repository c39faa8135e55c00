//! Folders that programs can change while the worker uses them. A folder is opened once, and names in it are resolved
//! from there, so a link that a program puts in the place of a folder or a file is never followed.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mode of files that only this user can read.
pub(crate) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Flags of every file and folder that is opened.
const SAFELY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Number of times that a link or a file in the place of a folder is removed.
const CREATE_TRIES: u32 = 3;

/// An open folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(Arc<OwnedFd>);

impl Folder {
    /// Opens a folder that is not a link. Links above it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let fd = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | SAFELY, Mode::empty())?;
        Ok(Folder(Arc::new(fd)))
    }

    /// Opens a folder in this one.
    pub(crate) fn enter(&self, name: &str) -> io::Result<Folder> {
        let fd = openat(&*self.0, name, OFlags::RDONLY | OFlags::DIRECTORY | SAFELY, Mode::empty())?;
        Ok(Folder(Arc::new(fd)))
    }

    /// Opens a folder in this one, and creates it if it does not exist. A link or a file with its name is removed.
    pub(crate) fn enter_or_create(&self, name: &str) -> io::Result<Folder> {
        let mut tries = 0..CREATE_TRIES;
        loop {
            match mkdirat(&*self.0, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            match self.enter(name) {
                Err(error) if is_no_folder(&error) && tries.next().is_some() => self.remove_file(name)?,
                entered => return entered,
            }
        }
    }

    /// Creates an empty folder in this one. Anything that has its name is removed with all its content.
    pub(crate) fn create(&self, name: &str) -> io::Result<Folder> {
        self.remove(name)?;
        mkdirat(&*self.0, name, Mode::RWXU)?;
        self.enter(name)
    }

    /// Creates a file that does not exist yet.
    pub(crate) fn create_file(&self, name: &str, mode: Mode) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | SAFELY;
        Ok(openat(&*self.0, name, flags, mode)?.into())
    }

    /// Opens a file for reading, if it exists. Anything else with this name is an error of the kind `Other`.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<Option<File>> {
        // Without NONBLOCK a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | SAFELY;
        let file: File = match openat(&*self.0, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            // A link, or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(no_file()),
            opened => opened?.into(),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(no_file()) }
    }

    /// Moves a file of another place here.
    pub(crate) fn take_file(&self, from: &Path, name: &str) -> io::Result<()> {
        Ok(renameat(CWD, from, &*self.0, name)?)
    }

    /// Removes a file or a link, if it exists.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        match unlinkat(&*self.0, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes a file, a link or a folder with all its content, if it exists.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        remove_folder(&self.at(name))
    }

    /// Returns a path of a name in this folder, which is valid in this process while the folder is open, even if a
    /// program has moved the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        opened_path(&self.0).join(name)
    }
}

/// Returns whether a name could not be entered because it is a link or a file.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOTDIR | Errno::LOOP))
}

fn no_file() -> io::Error {
    io::Error::other("it is not a file")
}

fn opened_path(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Creates an empty folder for this user only, and the folders above it. Anything that has its path is removed.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    remove_folder(folder)?;
    if let Some(above) = folder.parent() {
        DirBuilder::new().mode(0o700).recursive(true).create(above)?;
    }
    DirBuilder::new().mode(0o700).create(folder)
}

/// Removes a folder with all its content, if it exists. A link or a file with its path is removed as well. Programs of
/// steps may have left folders in it that their owner cannot enter.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_folders(folder)?;
                fs::remove_dir_all(folder)
            }
            removed => removed,
        },
        Ok(_) => fs::remove_file(folder),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes every folder of a tree writable. Links are not followed.
fn open_folders(top: &Path) -> io::Result<()> {
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder that its owner cannot enter can be opened as a path only.
        let flags = OFlags::PATH | OFlags::DIRECTORY | SAFELY;
        let fd = openat(CWD, &folder, flags, Mode::empty())?;
        fs::set_permissions(opened_path(&fd), Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(opened_path(&fd))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(folder.join(entry.file_name()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    /// A folder with another one outside of it, which must not change.
    fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        (place, inside, outside)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_created_empty_and_removed_with_all_contents() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("above/folder");
        make_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/file"), "x").unwrap();
        for closed in ["a/b", "a"] {
            fs::set_permissions(folder.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        make_folder(&folder).unwrap();
        assert_eq!(names(&folder), Vec::<String>::new(), "what an earlier hold left is gone");
        remove_folder(&folder).unwrap();
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn a_link_is_removed_and_what_it_leads_to_is_kept() {
        let (_place, inside, outside) = places();
        let folder = Folder::open(&inside).unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        folder.remove("link").unwrap();
        assert_eq!(names(&inside), Vec::<String>::new());
        fs::create_dir(inside.join("closed")).unwrap();
        symlink(&outside, inside.join("closed/link")).unwrap();
        fs::set_permissions(inside.join("closed"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o755)).unwrap();
        folder.remove("closed").unwrap();
        symlink(&outside, inside.join("again")).unwrap();
        make_folder(&inside.join("again")).unwrap();
        assert!(fs::symlink_metadata(inside.join("again")).unwrap().is_dir());
        assert_eq!(names(&outside), ["kept"]);
        assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn nothing_that_was_prepared_is_used() {
        let (_place, inside, outside) = places();
        let folder = Folder::open(&inside).unwrap();
        symlink(&outside, inside.join("steps")).unwrap();
        assert!(folder.enter("steps").is_err());
        let steps = folder.enter_or_create("steps").unwrap();
        fs::create_dir_all(inside.join("steps/z")).unwrap();
        symlink(&outside, inside.join("steps/z/context")).unwrap();
        let own = steps.create("z").unwrap();
        assert_eq!(names(&inside.join("steps/z")), Vec::<String>::new());
        symlink(outside.join("kept"), inside.join("steps/z/file")).unwrap();
        assert!(own.create_file("file", PRIVATE).is_err());
        assert_eq!(own.open_file("file").unwrap_err().kind(), io::ErrorKind::Other);
        own.remove_file("file").unwrap();
        own.create_file("file", PRIVATE).unwrap().write_all(b"own").unwrap();
        assert!(own.open_file("file").unwrap().is_some() && own.open_file("absent").unwrap().is_none());
        assert_eq!(names(&outside), ["kept"]);
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }

    #[test]
    fn an_open_folder_is_found_after_it_was_replaced() {
        let (place, inside, outside) = places();
        let folder = Folder::open(&inside).unwrap();
        fs::rename(&inside, place.path().join("elsewhere")).unwrap();
        symlink(&outside, &inside).unwrap();
        folder.create_file("file", PRIVATE).unwrap();
        assert!(folder.at("file").exists());
        assert_eq!(names(&place.path().join("elsewhere")), ["file"]);
        assert_eq!(names(&outside), ["kept"]);
    }
}
