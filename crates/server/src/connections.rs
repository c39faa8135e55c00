//! Connections: how many there may be, how long they may take to ask and to listen, TLS, and their orderly end.

mod attendance;
mod line;
mod places;
mod response;
mod tls;

use crate::client::ClientAddress;
use crate::settings::Settings;
use attendance::{Attendance, Overdue, Patience};
use axum::Router;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use ipnet::IpNet;
use line::Line;
use metrics::counter;
use places::Places;
use response::Attended;
use rustix::net::sockopt;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::{Tlsed, acceptor};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

/// When the system cannot give another connection, it is asked again after this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for a client of HTTP/2 to read that an idle connection ends.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Bytes of a request's head, and of a response on its way; memory that a stranger can take with each connection.
const BUFFER_MAX: usize = 64 * 1024;
/// Bytes of a response that the system holds for a client, who may take none of them. It counts twice as many for each
/// connection; by itself it would let that grow to megabytes.
const SEND_BUFFER: usize = 128 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// Requests of one HTTP/2 connection at a time.
const H2_STREAMS_MAX: u32 = 100;
const H2_HEADER_LIST_MAX: u32 = 16 * 1024;
/// Bytes of bodies that a client may send before they are read: of one request, and of all of a connection.
const H2_STREAM_WINDOW: u32 = 256 * 1024;
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Streams that were reset before they were looked at (rapid reset); beyond it the connection ends.
const H2_RESETS_MAX: usize = 20;

/// What all connections share.
#[derive(Debug)]
pub struct Connections {
    places: Places,
    stopping: watch::Sender<bool>,
    shared: Arc<Shared>,
}

/// What every connection needs to know.
#[derive(Debug)]
struct Shared {
    patience: Patience,
    tls: Option<Tlsed>,
    trusted: Vec<IpNet>,
}

impl Connections {
    /// At most `max` at a time.
    pub fn new(settings: &Settings, max: u32) -> anyhow::Result<Connections> {
        let trusted = settings.trust_proxy.clone();
        // One address never has all places, however few the limit on open files leaves.
        let per_address = settings.max_connections_per_address.min((max as usize / 2).max(1));
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        Ok(Connections {
            places: Places::new(max, per_address, trusted.clone()),
            stopping: watch::channel(false).0,
            shared: Arc::new(Shared { patience: Patience::of(settings), tls, trusted }),
        })
    }

    /// Asks every connection to end after the request it is at, and waits so long at most.
    pub async fn finish(&self, within: Duration) {
        self.stopping.send_replace(true);
        if !self.places.all_free(within).await {
            tracing::warn!(open = self.places.open(), "connections were cut off: they did not end in time");
        }
    }
}

/// Also after the server has closed a connection, the system holds what the client has not taken: not for longer than this.
#[cfg(target_os = "linux")]
fn end_unread(stream: &TcpStream, after: Duration) {
    let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = sockopt::set_tcp_user_timeout(stream, millis) {
        tracing::debug!(%error, "the system has no limit for what clients do not take");
    }
}

#[cfg(not(target_os = "linux"))]
fn end_unread(_: &TcpStream, _: Duration) {}

/// Takes connections until it is dropped. Those beyond the limit wait in the system's queue; those of an address that has
/// too many are closed.
pub async fn accept(listener: &TcpListener, connections: &Connections, router: Router) {
    // Connections inherit it from the socket that accepts them.
    if let Err(error) = sockopt::set_socket_send_buffer_size(listener, SEND_BUFFER) {
        tracing::warn!(%error, "the system does not bound what it holds for clients");
    }
    loop {
        let Some(permit) = connections.places.next().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "the system gave no connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = connections.places.take(permit, peer.ip()) else {
            counter!("windlass_connections_refused_total").increment(1);
            tracing::debug!(address = %peer.ip(), "a connection was closed: its address has too many");
            continue;
        };
        // Small answers go out at once; a system that refuses is only slower.
        let _ = stream.set_nodelay(true);
        end_unread(&stream, connections.shared.patience.write);
        let shared = connections.shared.clone();
        let talk = Talk {
            router: router.clone(),
            stopping: connections.stopping.subscribe(),
            attendance: Attendance::new(shared.patience, Instant::now()),
            peer: peer.ip(),
            shared,
        };
        let line = Line::new(stream, talk.shared.patience.write, place);
        tokio::spawn(talk.with(line));
    }
}

/// One connection.
struct Talk {
    router: Router,
    stopping: watch::Receiver<bool>,
    attendance: Arc<Attendance>,
    peer: IpAddr,
    shared: Arc<Shared>,
}

impl Talk {
    async fn with(self, line: Line) {
        let Some(Tlsed(acceptor)) = self.shared.tls.clone() else { return self.serve(line).await };
        match timeout(self.shared.patience.first, acceptor.accept(line)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client did not get through the TLS handshake"),
            Err(_) => tracing::debug!("a client took too long for the TLS handshake"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let builder = builder(self.shared.patience);
        let attendance = self.attendance.clone();
        let service = hyper::service::service_fn(|request| answer(&self, request));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // What it answers is a lock, which must not live on.
        let mut stopping = self.stopping.clone();
        let stopping = async { drop(stopping.wait_for(|stopping| *stopping).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            why = attendance.overdue() => {
                counter!("windlass_connections_overdue_total").increment(1);
                tracing::debug!(?why, "a connection was closed: its client took too long");
                if why != Overdue::Idle {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                timeout(GOODBYE_MAX, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended in an error");
        }
    }
}

/// Bounds of both protocols. Before the protocol is known, only `Attendance` bounds the time.
fn builder(patience: Patience) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.idle)
        .max_buf_size(BUFFER_MAX)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(patience.first))
        .keep_alive_timeout(patience.first)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(H2_HEADER_LIST_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(H2_RESETS_MAX)
        .max_local_error_reset_streams(H2_RESETS_MAX)
        .max_send_buf_size(BUFFER_MAX);
    builder
}

/// Passes a request on, with where it comes from. It is open until its response has been taken.
fn answer(
    talk: &Talk,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Attended>, Infallible>> + use<> {
    let exchange = talk.attendance.begin();
    let client = ClientAddress::of(talk.peer, &talk.shared.trusted, request.headers_mut());
    request.extensions_mut().insert(client);
    let router = talk.router.clone();
    async move {
        let response = router.oneshot(request).await?;
        Ok(response.map(|body| Attended::new(body, exchange)))
    }
}
