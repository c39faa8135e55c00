//! Connections of clients: their limits, timeouts and TLS, and the graceful stop.

mod activity;
mod response;
mod slots;
mod socket;

use crate::client::ClientAddress;
use crate::settings::{Settings, Tls};
use activity::{ClientTimeout, ClientTimeouts, ConnectionActivity};
use anyhow::Context as _;
use axum::Router;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use ipnet::IpNet;
use metrics::counter;
use response::TimedBody;
use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use slots::ConnectionSlots;
use socket::ConnectionSocket;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// Pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for an HTTP/2 client to read that an idle connection is closed.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Maximum bytes of a request's head, and of a buffered response: the memory that any client can take per connection.
const BUFFER_MAX: usize = 64 * 1024;
/// Bytes of a response that the kernel buffers for a client. It accounts twice as many; by default the buffer would grow to
/// megabytes.
const SEND_BUFFER: usize = 128 * 1024;
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 100;
/// Maximum number of concurrent requests of one HTTP/2 connection.
const H2_STREAMS_MAX: u32 = 100;
const H2_HEADER_LIST_MAX: u32 = 16 * 1024;
/// Flow-control windows of HTTP/2: bytes of one request, and of a connection, that are sent before they are read.
const H2_STREAM_WINDOW: u32 = 256 * 1024;
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Maximum number of streams that are reset before they are processed (rapid reset); beyond it the connection is closed.
const H2_RESETS_MAX: usize = 20;

/// All connections of the server.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: ConnectionSlots,
    stopping: watch::Sender<bool>,
    shared: Arc<Shared>,
}

/// State that all connections share.
#[derive(Debug)]
struct Shared {
    timeouts: ClientTimeouts,
    tls: Option<Acceptor>,
    trusted: Vec<IpNet>,
}

impl Connections {
    /// Creates a set of at most `max` open connections.
    pub(crate) fn new(settings: &Settings, max: u32) -> anyhow::Result<Connections> {
        let trusted = settings.trust_proxy.clone();
        // One address never has all slots, however few the limit on open files leaves.
        let per_address = settings.max_connections_per_address.min((max as usize / 2).max(1));
        let tls = settings.tls.as_ref().map(tls_acceptor).transpose()?;
        Ok(Connections {
            slots: ConnectionSlots::new(max, per_address, trusted.clone()),
            stopping: watch::channel(false).0,
            shared: Arc::new(Shared { timeouts: ClientTimeouts::of(settings), tls, trusted }),
        })
    }

    /// Closes every connection after its current request, and waits until all are closed or the time is over.
    pub(crate) async fn finish(&self, within: Duration) {
        self.stopping.send_replace(true);
        if !self.slots.all_free(within).await {
            tracing::warn!(open = self.slots.open(), "closed connections that did not end in time");
        }
    }
}

/// Bounds the time that the kernel keeps unsent data of a connection, even after the server has closed it.
#[cfg(target_os = "linux")]
fn set_unsent_timeout(stream: &TcpStream, after: Duration) {
    let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = sockopt::set_tcp_user_timeout(stream, millis) {
        tracing::debug!(%error, "cannot set the timeout of unsent data");
    }
}

#[cfg(not(target_os = "linux"))]
fn set_unsent_timeout(_: &TcpStream, _: Duration) {}

/// Accepts connections until it is dropped. Connections beyond the limit wait in the kernel's queue; those of an address
/// with too many are closed.
pub(crate) async fn accept(listener: &TcpListener, connections: &Connections, router: Router) {
    // Connections inherit the size from the listening socket.
    if let Err(error) = sockopt::set_socket_send_buffer_size(listener, SEND_BUFFER) {
        tracing::warn!(%error, "cannot set the size of send buffers");
    }
    loop {
        let Some(permit) = connections.slots.next().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; retrying");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(slot) = connections.slots.take(permit, peer.ip()) else {
            counter!("windlass_connections_refused_total").increment(1);
            tracing::debug!(address = %peer.ip(), "closed a connection: its address has too many");
            continue;
        };
        // Small responses are sent at once; an error only makes them slower.
        let _ = stream.set_nodelay(true);
        set_unsent_timeout(&stream, connections.shared.timeouts.write);
        let shared = connections.shared.clone();
        let connection = Connection {
            router: router.clone(),
            stopping: connections.stopping.subscribe(),
            activity: ConnectionActivity::new(shared.timeouts, Instant::now()),
            peer: peer.ip(),
            shared,
        };
        let socket = ConnectionSocket::new(stream, connection.shared.timeouts.write, slot);
        tokio::spawn(connection.run(socket));
    }
}

/// One connection.
struct Connection {
    router: Router,
    stopping: watch::Receiver<bool>,
    activity: Arc<ConnectionActivity>,
    peer: IpAddr,
    shared: Arc<Shared>,
}

impl Connection {
    async fn run(self, socket: ConnectionSocket) {
        let Some(Acceptor(acceptor)) = self.shared.tls.clone() else { return self.serve(socket).await };
        match timeout(self.shared.timeouts.first, acceptor.accept(socket)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let builder = builder(self.shared.timeouts);
        let activity = self.activity.clone();
        let service = hyper::service::service_fn(|request| answer(&self, request));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // The returned guard is dropped at once: it holds a lock.
        let mut stopping = self.stopping.clone();
        let stopping = async { drop(stopping.wait_for(|stopping| *stopping).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            why = activity.wait_for_timeout() => {
                counter!("windlass_connections_overdue_total").increment(1);
                tracing::debug!(?why, "closed a connection: its client took too long");
                if why != ClientTimeout::Idle {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                timeout(GOODBYE_MAX, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended with an error");
        }
    }
}

/// Returns the limits of both protocols. Before the protocol is known, only [`ConnectionActivity`] bounds the time.
fn builder(timeouts: ClientTimeouts) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.idle)
        .max_buf_size(BUFFER_MAX)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(timeouts.first))
        .keep_alive_timeout(timeouts.first)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(H2_HEADER_LIST_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(H2_RESETS_MAX)
        .max_local_error_reset_streams(H2_RESETS_MAX)
        .max_send_buf_size(BUFFER_MAX);
    builder
}

/// Routes a request, with the address of its client. The exchange is open until the response is read.
fn answer(
    connection: &Connection,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<TimedBody>, Infallible>> + use<> {
    let exchange = connection.activity.begin();
    let client = ClientAddress::of(connection.peer, &connection.shared.trusted, request.headers_mut());
    request.extensions_mut().insert(client);
    let router = connection.router.clone();
    async move {
        let response = router.oneshot(request).await?;
        Ok(response.map(|body| TimedBody::new(body, exchange)))
    }
}

/// The acceptor of TLS connections, which has no `Debug` of its own.
#[derive(Clone)]
struct Acceptor(TlsAcceptor);

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor")
    }
}

fn tls_acceptor(tls: &Tls) -> anyhow::Result<Acceptor> {
    let chain = certificates(tls).with_context(|| format!("tls-cert: cannot use {}", tls.cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .with_context(|| format!("tls-key: cannot use {}", tls.key.display()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and the key do not match")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Acceptor(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(tls: &Tls) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(&tls.cert)?.collect::<Result<_, _>>()?;
    match chain.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the file has no certificate").into()),
        false => Ok(chain),
    }
}
