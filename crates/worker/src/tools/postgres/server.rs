//! A connection for one task.

use super::config::PostgresServer;
use super::errors::PostgresError;
use super::reach;
use crate::egress::Egress;
use crate::failure::failure;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;
use windlass_protocol::codes;

/// Maximum time for closing the connection, which only prevents a line in the server's log.
const GOODBYE: Duration = Duration::from_secs(1);

pub(super) struct Session {
    client: Client,
    tls: MakeRustlsConnect,
    /// Task that transports the messages; it ends with the client, and at the latest with the session.
    carrier: JoinSet<()>,
}

impl Session {
    pub(super) async fn open(place: &PostgresServer, egress: &Egress) -> Result<Session, PostgresError> {
        let config = reach::allowed(place, egress).await?;
        let tls = tls(place.verifies).await?;
        let (client, connection) = config.connect(tls.clone()).await.map_err(PostgresError::connecting)?;
        let mut carrier = JoinSet::new();
        carrier.spawn(async move {
            // The query that waits for an answer gets the error, too.
            let _ = connection.await;
        });
        let session = Session { client, tls, carrier };
        if let Some(schema) = &place.schema {
            let path = search_path(schema);
            session.client.execute("SELECT set_config('search_path', $1, false)", &[&path]).await?;
        }
        Ok(session)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Requests the server to cancel the running statement. If that fails, the statement ends with the connection.
    pub(super) async fn cancel(&self, within: Duration) {
        let _ = timeout(within, self.client.cancel_token().cancel_query(self.tls.clone())).await;
    }

    pub(super) async fn close(mut self) {
        drop(self.client);
        let _ = timeout(GOODBYE, self.carrier.join_next()).await;
    }
}

/// Formats names as they are written, several with commas between them.
fn search_path(schemas: &str) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.trim().trim_matches('"').replace('"', "\"\""));
    schemas.split(',').map(quoted).collect::<Vec<_>>().join(", ")
}

async fn tls(verifies: bool) -> Result<MakeRustlsConnect, PostgresError> {
    // The system's certificates are read here, and the pool has one thread.
    let made = spawn_blocking(move || config(verifies)).await;
    let config =
        made.map_err(|error| error.to_string()).and_then(|made| made.map_err(|error| error.to_string()));
    config.map(MakeRustlsConnect::new).map_err(|error| {
        failure(codes::DB_NOT_STARTED, format!("TLS cannot be set up for postgres: {error}")).into()
    })
}

fn config(verifies: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if verifies {
        Arc::new(Verifier::new(Arc::clone(&provider))?)
    } else {
        Arc::new(AnyServer(Arc::clone(&provider)))
    };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts any certificate, for `prefer` and `require`: encryption without a check of the server's identity.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
