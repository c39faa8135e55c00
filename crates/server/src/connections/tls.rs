//! HTTPS: the certificate and its key.

use crate::settings::Tls;
use anyhow::Context;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

#[derive(Clone)]
pub struct Tlsed(pub TlsAcceptor);

impl std::fmt::Debug for Tlsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tlsed")
    }
}

pub fn acceptor(tls: &Tls) -> anyhow::Result<Tlsed> {
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
