//! Artifacts between a worker process and its server: streams that neither side holds in memory. A transfer that fails
//! is repeated from its beginning.

use super::{AGAIN, AGAIN_MAX, ANSWER_TIMEOUT, Link, LinkNews, RequestError, TRIES_MAX, unreachable};
use crate::failure::failure;
use bytes::Bytes;
use futures_util::stream;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use windlass_artifact::KeyHasher;
use windlass_protocol::{
    BYTES_TYPE, Body, BodyFile, ResourceAsk, ResourceCall, ResourceReply, SESSION_HEADER, UNIT_HEADER, Unit,
    codes,
};

/// Bytes that are read, sent or written at a time. Larger pieces are not faster, and several of them are in memory at
/// a time.
const PIECE_BYTES: usize = 128 << 10;

/// Minimum speed of a network in bytes per second; an upload that is slower fails and is repeated.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 << 10;

/// Maximum size of an artifact that is fetched into memory: one that a template reads or a reference drills into.
const IN_MEMORY_MAX: u64 = 64 << 20;

static DOWNLOADS: AtomicU64 = AtomicU64::new(0);

/// An artifact that is being sent or fetched.
pub(super) struct Transfer {
    unit: Unit,
    key: String,
    kind: Kind,
}

enum Kind {
    Upload { length: u64, content: Content },
    ToMemory,
    ToFile,
}

#[derive(Clone)]
enum Content {
    Bytes(Bytes),
    File(PathBuf),
}

impl Transfer {
    /// Returns the call itself if it carries no artifact.
    pub(super) fn of(call: ResourceCall) -> Result<Transfer, Box<ResourceCall>> {
        let ResourceCall { unit, ask } = call;
        let (key, kind) = match ask {
            ResourceAsk::PutArtifact { key, body } => (key, Kind::upload(body)),
            ResourceAsk::GetArtifact { key } => (key, Kind::ToMemory),
            ResourceAsk::GetArtifactFile { key } => (key, Kind::ToFile),
            ask @ (ResourceAsk::GetRights
            | ResourceAsk::OpenSecret { .. }
            | ResourceAsk::StoreMemory { .. }
            | ResourceAsk::SearchMemory(_)
            | ResourceAsk::FindRoutingKey { .. }) => return Err(Box::new(ResourceCall { unit, ask })),
        };
        Ok(Transfer { unit, key, kind })
    }
}

impl Kind {
    fn upload(body: Body) -> Kind {
        let Body { length, bytes, file } = body;
        match file {
            Some(BodyFile::Moved(file) | BodyFile::Shared(file)) => {
                Kind::Upload { length, content: Content::File(file) }
            }
            None => Kind::Upload { length: bytes.len() as u64, content: Content::Bytes(bytes.into()) },
        }
    }
}

impl Link {
    /// Sends or fetches an artifact. None: the server did not answer in all tries, and the call is lost.
    pub(super) async fn transfer(&self, transfer: Transfer) -> Option<ResourceReply> {
        let mut again = AGAIN;
        for _ in 0..TRIES_MAX {
            let Some(session) = self.session() else { return Some(ResourceReply::Stale) };
            let tried = match &transfer.kind {
                Kind::Upload { length, content } => self.upload(&session, &transfer, *length, content).await,
                Kind::ToMemory => self.fetch(&session, &transfer, None).await,
                Kind::ToFile => self.fetch(&session, &transfer, Some(new_path(&self.config.downloads))).await,
            };
            match tried {
                Ok(reply) => return Some(reply),
                Err(RequestError::NoSession) => return Some(ResourceReply::Stale),
                Err(RequestError::TooLarge(why) | RequestError::Refused(why)) => return Some(refused(&why)),
                Err(RequestError::Unreachable(why)) => {
                    (self.watch)(LinkNews::Unreachable(why));
                    sleep(again).await;
                    again = (again * 2).min(AGAIN_MAX);
                }
            }
        }
        None
    }

    fn request_artifact(&self, method: Method, session: &str, transfer: &Transfer) -> RequestBuilder {
        // Writing plain data cannot fail.
        let unit = serde_json::to_string(&transfer.unit).unwrap_or_default();
        let request = self.request(method, &format!("artifacts/{}", transfer.key));
        request.header(SESSION_HEADER, session).header(UNIT_HEADER, unit)
    }

    async fn upload(
        &self,
        session: &str,
        transfer: &Transfer,
        length: u64,
        content: &Content,
    ) -> Result<ResourceReply, RequestError> {
        let body = match content {
            Content::Bytes(bytes) => reqwest::Body::from(bytes.clone()),
            Content::File(path) => match open(path.clone()).await {
                Ok(file) => reqwest::Body::wrap_stream(stream::try_unfold(file, read_piece)),
                Err(error) => return Ok(unusable_file(path, &error)),
            },
        };
        let request = self.request_artifact(Method::PUT, session, transfer);
        let request = request.header(CONTENT_TYPE, BYTES_TYPE).header(CONTENT_LENGTH, length);
        let within = ANSWER_TIMEOUT + Duration::from_secs(length / SLOWEST_BYTES_PER_SECOND);
        let reply = self.send(request.timeout(within).body(body)).await?.json().await.map_err(unreachable)?;
        if let (ResourceReply::Stored, Content::File(path)) = (&reply, content) {
            // The engine would have moved the file. A file that cannot be removed is removed with its folder.
            let _ = fs::remove_file(path);
        }
        Ok(reply)
    }

    /// Fetches an artifact into a file, or into memory without one.
    async fn fetch(
        &self,
        session: &str,
        transfer: &Transfer,
        to: Option<PathBuf>,
    ) -> Result<ResourceReply, RequestError> {
        let request = self.request_artifact(Method::GET, session, transfer);
        let response = timeout(ANSWER_TIMEOUT, self.send(request)).await.map_err(|_| too_slow())??;
        let is_bytes = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == BYTES_TYPE);
        if !is_bytes {
            return response.json().await.map_err(unreachable);
        }
        let length = response.content_length().unwrap_or(u64::MAX);
        match to {
            None if length > IN_MEMORY_MAX => Ok(too_large(length)),
            None => receive(response, Vec::new()).await.and_then(|(key, bytes)| {
                check_key(&key, transfer)?;
                Ok(ResourceReply::Artifact(Some(bytes.into())))
            }),
            Some(path) => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
                let file = match file {
                    Ok(file) => file,
                    Err(error) => return Ok(unusable_file(&path, &error)),
                };
                // A proxy may leave out the length of the response.
                let received = receive(response, file).await.and_then(|(key, file)| {
                    check_key(&key, transfer)?;
                    let length = file.metadata().map(|facts| facts.len());
                    length.map_err(|error| RequestError::Unreachable(format!("it cannot be read: {error}")))
                });
                match received {
                    Ok(length) => {
                        Ok(ResourceReply::Artifact(Some(Body::of_file(length, BodyFile::Moved(path)))))
                    }
                    Err(trouble) => {
                        let _ = fs::remove_file(&path);
                        Err(trouble)
                    }
                }
            }
        }
    }
}

/// Writes the bytes of a response, and returns their key.
async fn receive<W: io::Write + Send + 'static>(
    mut response: Response,
    mut to: W,
) -> Result<(String, W), RequestError> {
    let mut hasher = KeyHasher::default();
    let mut piece: Vec<u8> = Vec::new();
    loop {
        let next = timeout(ANSWER_TIMEOUT, response.chunk()).await.map_err(|_| too_slow())?;
        let next = next.map_err(unreachable)?;
        if let Some(bytes) = &next {
            piece.extend_from_slice(bytes);
        }
        if piece.len() >= PIECE_BYTES || next.is_none() {
            let write = move || {
                hasher.update(&piece);
                to.write_all(&piece).map(|()| (hasher, to, piece))
            };
            let written = tokio::task::spawn_blocking(write).await.map_err(io::Error::other).flatten();
            (hasher, to, piece) =
                written.map_err(|error| RequestError::Unreachable(format!("no room for it: {error}")))?;
            piece.clear();
        }
        if next.is_none() {
            return Ok((hasher.finish(), to));
        }
    }
}

fn check_key(key: &str, transfer: &Transfer) -> Result<(), RequestError> {
    match key == transfer.key {
        true => Ok(()),
        false => Err(RequestError::Unreachable("an artifact arrived damaged or truncated".to_owned())),
    }
}

async fn open(path: PathBuf) -> io::Result<File> {
    tokio::task::spawn_blocking(move || File::open(path)).await.map_err(io::Error::other)?
}

async fn read_piece(file: File) -> io::Result<Option<(Bytes, File)>> {
    let read = move || {
        let mut piece = vec![0; PIECE_BYTES];
        let count = (&file).read(&mut piece)?;
        piece.truncate(count);
        Ok((count > 0).then(|| (Bytes::from(piece), file)))
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

/// Creates the folder for artifacts that are being fetched, and removes those of an earlier process.
pub(super) fn prepare_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

fn new_path(folder: &Path) -> PathBuf {
    folder.join(DOWNLOADS.fetch_add(1, Ordering::Relaxed).to_string())
}

fn too_slow() -> RequestError {
    RequestError::Unreachable(format!("no bytes arrived for {} seconds", ANSWER_TIMEOUT.as_secs()))
}

fn refused(why: &str) -> ResourceReply {
    let message = format!("the server refused an artifact: {why}");
    ResourceReply::Failed(*failure(codes::WORKER_REFUSED, message))
}

fn too_large(length: u64) -> ResourceReply {
    let message = format!(
        "a value of {length} bytes is read whole, which is possible up to {IN_MEMORY_MAX} bytes; pass it to a plan step as a file"
    );
    ResourceReply::Failed(*failure(codes::VALUE_TOO_LARGE, message))
}

fn unusable_file(path: &Path, error: &io::Error) -> ResourceReply {
    let message = format!("{}: {error}", path.display());
    ResourceReply::Failed(*failure(codes::FILE_UNREADABLE, message))
}
