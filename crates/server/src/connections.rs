//! Connections: how many there may be, how long they may take to ask, TLS, and their orderly end.

use crate::settings::{Settings, Tls};
use anyhow::Context;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// When the system cannot give another connection, it is asked again after this time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Debug)]
pub struct Connections {
    places: Arc<Semaphore>,
    places_max: u32,
    stopping: watch::Sender<bool>,
    header_timeout: Duration,
    tls: Option<Tlsed>,
}

#[derive(Clone)]
struct Tlsed(TlsAcceptor);

impl std::fmt::Debug for Tlsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tlsed")
    }
}

impl Connections {
    pub fn new(settings: &Settings) -> anyhow::Result<Connections> {
        let places_max = u32::try_from(settings.max_connections).unwrap_or(u32::MAX);
        Ok(Connections {
            places: Arc::new(Semaphore::new(settings.max_connections)),
            places_max,
            stopping: watch::channel(false).0,
            header_timeout: settings.header_timeout,
            tls: settings.tls.as_ref().map(acceptor).transpose()?,
        })
    }

    /// Asks every connection to end after the request it is at, and waits so long at most.
    pub async fn finish(&self, within: Duration) {
        self.stopping.send_replace(true);
        let all_places = self.places.acquire_many(self.places_max);
        if tokio::time::timeout(within, all_places).await.is_err() {
            let open = self.places_max as usize - self.places.available_permits();
            tracing::warn!(open, "connections were cut off: they did not end in time");
        }
    }
}

/// Takes connections until it is dropped. Those beyond the limit wait in the system's queue.
pub async fn accept(listener: &TcpListener, connections: &Connections, router: Router) {
    loop {
        let Ok(place) = connections.places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the system gave no connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Small answers go out at once; a system that refuses is only slower.
        let _ = stream.set_nodelay(true);
        let talk = Talk {
            router: router.clone(),
            stopping: connections.stopping.subscribe(),
            header_timeout: connections.header_timeout,
            _place: place,
        };
        tokio::spawn(talk.with(stream, connections.tls.clone()));
    }
}

/// One connection.
struct Talk {
    router: Router,
    stopping: watch::Receiver<bool>,
    header_timeout: Duration,
    _place: OwnedSemaphorePermit,
}

impl Talk {
    async fn with(self, stream: TcpStream, tls: Option<Tlsed>) {
        let Some(Tlsed(acceptor)) = tls else { return self.serve(stream).await };
        match tokio::time::timeout(self.header_timeout, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a client did not get through the TLS handshake"),
            Err(_) => tracing::debug!("a client took too long for the TLS handshake"),
        }
    }

    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.header_timeout);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(self.header_timeout));
        let service = TowerToHyperService::new(self.router);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // What it answers is a lock, which must not live on.
        let stopping = async { drop(self.stopping.wait_for(|stopping| *stopping).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended in an error");
        }
    }
}

fn acceptor(tls: &Tls) -> anyhow::Result<Tlsed> {
    let chain = certificates(tls).with_context(|| format!("tls-cert: cannot use {}", tls.cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .with_context(|| format!("tls-key: cannot use {}", tls.key.display()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and the key cannot be used together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tlsed(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(tls: &Tls) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(&tls.cert)?.collect::<Result<_, _>>()?;
    match chain.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "there is no certificate in it").into()),
        false => Ok(chain),
    }
}
