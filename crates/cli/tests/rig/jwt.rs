//! JWTs signed by `openssl`, which shares no code with the server.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Signs with HS256; the header may name another algorithm.
pub fn sign(secret: &str, header: &Value, claims: &Value) -> String {
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed =
        format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", secret, "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl runs");
    openssl.stdin.take().expect("a pipe").write_all(signed.as_bytes()).expect("it reads");
    let output = openssl.wait_with_output().expect("it ends");
    assert!(output.status.success());
    format!("{signed}.{}", encode(&output.stdout))
}
