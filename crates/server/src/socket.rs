//! The Unix socket in a data folder: the API of the process that holds the folder, for commands of the folder's owner.
//!
//! Folder and socket belong to one user, so every process that can connect could also read the owner's token.

use crate::app::App;
use crate::auth::FolderOwner;
use crate::routes;
use anyhow::Context;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustix::fs::{Mode, OFlags, open};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};

const NAME: &str = "api.sock";
/// Maximum bytes of a socket path on every Unix, with the terminating zero.
const PATH_MAX: usize = 104;
/// Pause after an error of the system, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The path of a folder's socket. A path that is too long for the system leads through a handle of the folder.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl SocketPath {
    pub fn in_folder(folder: &Path) -> std::io::Result<SocketPath> {
        let path = folder.join(NAME);
        if path.as_os_str().as_bytes().len() < PATH_MAX {
            return Ok(SocketPath { path, _folder: None });
        }
        let handle = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", handle.as_raw_fd()));
        Ok(SocketPath { path, _folder: Some(handle) })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reports whether a process listens on the socket.
    #[must_use]
    pub fn is_open(&self) -> bool {
        UnixStream::connect(&self.path).is_ok()
    }
}

/// A socket that this process serves; the file is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct FolderSocket {
    path: SocketPath,
    serving: JoinHandle<()>,
}

impl FolderSocket {
    /// Serves the routes in a folder that this process holds, until `app` stops. Must be called in a runtime.
    pub(crate) fn serve(folder: &Path, app: Arc<App>) -> anyhow::Result<FolderSocket> {
        let path = SocketPath::in_folder(folder).context("cannot open the data folder")?;
        let listener =
            bind(path.path()).with_context(|| format!("cannot listen on {}", path.path().display()))?;
        let router = routes::router(app.clone()).layer(Extension(FolderOwner));
        let stopped = Box::pin(async move { app.stopped().await });
        let listener =
            FolderListener { path: path.path().to_owned(), stopped, open: Some(listener), closing: None };
        Ok(FolderSocket { path, serving: tokio::spawn(serve_all(listener, router)) })
    }

    /// Waits until open requests are answered, after the app was stopped.
    pub(crate) async fn finish(mut self, within: Duration) {
        let _ = tokio::time::timeout(within, &mut self.serving).await;
    }
}

impl Drop for FolderSocket {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = fs::remove_file(self.path.path());
    }
}

/// Serves every connection of the listener to its end.
async fn serve_all(mut listener: FolderListener, router: Router) {
    let mut connections = JoinSet::new();
    while let Some(stream) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve_one(stream, router.clone()));
    }
    while connections.join_next().await.is_some() {}
}

/// Serves the one request of a connection. A connection with several requests would have to be closed while its client
/// is sending the next one, and the client could not know whether that request took effect.
async fn serve_one(stream: tokio::net::UnixStream, router: Router) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the socket in the data folder ended with an error");
    }
}

/// Accepts connections until `stopped` resolves, and then those that were made before: a command that has connected
/// gets its response and knows whether its request took effect.
struct FolderListener {
    path: PathBuf,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    open: Option<UnixListener>,
    /// The listener after the socket's file was removed, when no connection can be added.
    closing: Option<std::os::unix::net::UnixListener>,
}

impl FolderListener {
    /// Returns `None` when the listener has stopped and no connection is left.
    async fn accept(&mut self) -> Option<tokio::net::UnixStream> {
        while let Some(listener) = &self.open {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => return Some(stream),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the socket in the data folder was not accepted");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
                () = &mut self.stopped => self.close(),
            }
        }
        while let Some((stream, _)) = self.closing.as_ref().and_then(|listener| listener.accept().ok()) {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = tokio::net::UnixStream::from_std(stream)
            {
                return Some(stream);
            }
        }
        None
    }

    fn close(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.closing = self.open.take().and_then(|listener| listener.into_std().ok());
    }
}

/// Removes the socket of a killed process: the caller holds the folder.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[test]
    fn a_folder_with_a_long_path_has_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(150));
        fs::create_dir(&deep).unwrap();
        let path = SocketPath::in_folder(&deep).unwrap();
        assert!(!path.is_open());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let listener = runtime.block_on(async { bind(path.path()) }).unwrap();
        assert!(path.is_open());
        assert_eq!(fs::metadata(deep.join(NAME)).unwrap().permissions().mode() & 0o777, 0o600);
        drop(listener);
        assert!(!path.is_open(), "a socket without a server is not open");
        runtime.block_on(async { bind(path.path()) }).unwrap();
    }

    #[tokio::test]
    async fn a_connection_made_before_the_stop_gets_its_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = SocketPath::in_folder(folder.path()).unwrap();
        let (stop, is_stopped) = tokio::sync::oneshot::channel::<()>();
        let listener = FolderListener {
            path: path.path().to_owned(),
            stopped: Box::pin(async move { drop(is_stopped.await) }),
            open: Some(bind(path.path()).unwrap()),
            closing: None,
        };
        let router = Router::new().route("/", axum::routing::get(|| async { "answer" }));
        let serving = tokio::spawn(serve_all(listener, router));
        let mut client = tokio::net::UnixStream::connect(path.path()).await.unwrap();
        // The connection is accepted, and its request is not yet sent.
        tokio::task::yield_now().await;
        stop.send(()).unwrap();
        while path.path().exists() {
            tokio::task::yield_now().await;
        }
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK") && response.ends_with("answer"), "{response}");
        serving.await.unwrap();
    }
}
