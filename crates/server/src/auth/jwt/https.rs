//! Tests of a JWKS over https, with a server and a certificate authority of their own.

use super::keys::Keys;
use super::tests::openssl;
use jsonwebtoken::{Algorithm, EncodingKey};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Body of the response; None: the server fails.
type Answer = Arc<Mutex<Option<Value>>>;

struct Provider {
    url: String,
    authority: reqwest::Certificate,
    answer: Answer,
    asked: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

impl Provider {
    async fn with(answer: Value) -> Provider {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let name = "subjectAltName=IP:127.0.0.1";
        std::fs::write(at.join("san"), name).unwrap();
        let authority =
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(&[&authority[..], &["-days", "2", "-subj", "/CN=tests"]].concat(), at);
        let request = ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "own.csr"];
        openssl(&[&request[..], &["-subj", "/CN=provider"]].concat(), at);
        let sign = ["x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        openssl(&[&sign[..], &["-out", "own.pem", "-days", "2", "-extfile", "san"]].concat(), at);
        let chain = vec![CertificateDer::from_pem_file(at.join("own.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(at.join("own.key")).unwrap();
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/keys", listener.local_addr().unwrap());
        let authority = reqwest::Certificate::from_pem(&std::fs::read(at.join("ca.pem")).unwrap()).unwrap();
        let (answer, asked) = (Arc::new(Mutex::new(Some(answer))), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), answer.clone(), asked.clone()));
        Provider { url, authority, answer, asked, _folder: folder }
    }

    fn trusting(&self) -> reqwest::Client {
        reqwest::Client::builder()
            .https_only(true)
            .add_root_certificate(self.authority.clone())
            .build()
            .unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn answers(&self, answer: Option<Value>) {
        *self.answer.lock().unwrap() = answer;
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, answer: Answer, asked: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = tls.accept(stream).await else { continue };
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).await;
        asked.fetch_add(1, Ordering::Relaxed);
        let keys = answer.lock().unwrap().clone();
        let (status, body) = match keys {
            Some(keys) => ("200 OK", keys.to_string()),
            None => ("503 Service Unavailable", String::new()),
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

fn key(id: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], folder.path());
    let private = std::fs::read(folder.path().join("key.pem")).unwrap();
    let signing = EncodingKey::from_ed_pem(&private).unwrap();
    let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&signing, Algorithm::EdDSA).unwrap();
    let mut jwk = serde_json::to_value(jwk).unwrap();
    jwk["kid"] = json!(id);
    jwk
}

async fn knows(keys: &Keys, id: &str) -> bool {
    !keys.of(Some(id), Algorithm::EdDSA).await.is_empty()
}

#[tokio::test]
async fn a_jwks_is_read_only_from_a_server_with_a_trusted_certificate() {
    let provider = Provider::with(json!({ "keys": [key("one")] })).await;
    let keys = Keys::over(&provider.url, provider.trusting()).await.unwrap();
    assert!(knows(&keys, "one").await && provider.asked() == 1);
    let stranger = reqwest::Client::builder().https_only(true).build().unwrap();
    let error = Keys::over(&provider.url, stranger).await.expect_err("its authority is not trusted");
    assert!(format!("{error:#}").to_lowercase().contains("certificate"), "{error:#}");
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_once_and_unknown_keys_cause_no_flood() {
    let (one, two) = (key("one"), key("two"));
    let provider = Provider::with(json!({ "keys": [one] })).await;
    let keys = Arc::new(Keys::over(&provider.url, provider.trusting()).await.unwrap());
    provider.answers(Some(json!({ "keys": [two] })));
    let began = Instant::now();
    assert!(knows(&keys, "two").await, "the first unknown key is fetched at once");
    assert!(!knows(&keys, "one").await, "a withdrawn key is dropped");
    let many: Vec<_> = (0..50)
        .map(|number| {
            let keys = keys.clone();
            tokio::spawn(async move { knows(&keys, &format!("../../{number}")).await })
        })
        .collect();
    for one in many {
        assert!(!one.await.unwrap());
    }
    let allowed = 2 + began.elapsed().as_secs() / super::keys::ASK_PAUSE.as_secs();
    assert!(provider.asked() as u64 <= allowed, "{} times for 52 tokens", provider.asked());
}

#[tokio::test]
async fn a_failing_provider_leaves_the_keys_as_they_are() {
    for broken in [None, Some(json!({ "keys": [] })), Some(json!("nonsense"))] {
        let provider = Provider::with(json!({ "keys": [key("one")] })).await;
        let keys = Keys::over(&provider.url, provider.trusting()).await.unwrap();
        provider.answers(broken);
        assert!(!knows(&keys, "other").await);
        assert!(provider.asked() == 2 && knows(&keys, "one").await);
    }
}
