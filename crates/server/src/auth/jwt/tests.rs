use super::*;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::path::PathBuf;
use windlass_secrets::Zeroizing;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const LATER: i64 = 4_000_000_000;

fn settings() -> JwtSettings {
    JwtSettings {
        issuer: Some("https://id.example".into()),
        audience: Some("windlass".into()),
        ..JwtSettings::default()
    }
}

fn with_secret() -> JwtSettings {
    JwtSettings { secret: Some(Zeroizing::new(SECRET.to_owned())), ..settings() }
}

fn claims() -> Value {
    json!({ "sub": "ann", "tenant": "default", "role": "developer", "iss": "https://id.example", "aud": "windlass", "exp": LATER })
}

fn changed(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

fn signed(algorithm: Algorithm, kid: Option<&str>, claims: &Value, key: &EncodingKey) -> String {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    encode(&header, claims, key).unwrap()
}

fn hs256(claims: &Value) -> String {
    signed(Algorithm::HS256, None, claims, &EncodingKey::from_secret(SECRET.as_bytes()))
}

/// A new key pair: the signing key, and the file of the public key.
struct Pair {
    signing: EncodingKey,
    public: PathBuf,
    jwk: Value,
    _folder: tempfile::TempDir,
}

pub(super) fn openssl(args: &[&str], folder: &std::path::Path) {
    let output = std::process::Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn pair(algorithm: Algorithm) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let kind: &[&str] = match algorithm {
        Algorithm::EdDSA => &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"],
        _ => &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key.pem"],
    };
    openssl(kind, folder.path());
    openssl(&["pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"], folder.path());
    let private = std::fs::read(folder.path().join("key.pem")).unwrap();
    let signing = match algorithm {
        Algorithm::EdDSA => EncodingKey::from_ed_pem(&private).unwrap(),
        _ => EncodingKey::from_rsa_pem(&private).unwrap(),
    };
    let jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&signing, algorithm).unwrap();
    let public = folder.path().join("public.pem");
    Pair { signing, public, jwk: serde_json::to_value(jwk).unwrap(), _folder: folder }
}

async fn refused(jwt: &Jwt, token: &str) -> String {
    jwt.holder(token).await.expect_err("it is refused")
}

#[tokio::test]
async fn a_valid_token_names_its_holder() {
    let jwt = Jwt::of(&with_secret()).await.unwrap().unwrap();
    let holder = jwt.holder(&hs256(&claims())).await.unwrap();
    let Holder { subject, tenant, role, until, .. } = holder;
    assert_eq!((subject.as_str(), tenant, role), ("jwt:ann", Tenant::default(), Role::Developer));
    let end = claims()["exp"].as_i64().unwrap();
    assert!((end * 1_000..=(end + 60) * 1_000).contains(&until.0), "{until:?}");
    let several = changed("aud", json!(["other", "windlass"]));
    assert!(jwt.holder(&hs256(&several)).await.is_ok());
}

#[tokio::test]
async fn a_token_with_any_wrong_claim_is_refused() {
    let jwt = Jwt::of(&with_secret()).await.unwrap().unwrap();
    for (name, value) in [
        ("exp", json!(1_000_000_000)),
        ("exp", Value::Null),
        ("nbf", json!(LATER)),
        ("iss", json!("https://elsewhere.example")),
        ("iss", Value::Null),
        ("aud", json!("another")),
        ("aud", Value::Null),
        ("sub", Value::Null),
        ("sub", json!("")),
        ("sub", json!("x".repeat(SUBJECT_MAX + 1))),
        ("tenant", Value::Null),
        ("role", Value::Null),
        ("role", json!("root")),
    ] {
        let why = refused(&jwt, &hs256(&changed(name, value.clone()))).await;
        assert!(why.contains("JWT is not accepted"), "{name} = {value}: {why}");
    }
    let good = hs256(&claims());
    let (body, _) = good.rsplit_once('.').unwrap();
    refused(&jwt, body).await;
    refused(&jwt, &format!("{body}.")).await;
    refused(&jwt, &format!("{good}x")).await;
    refused(&jwt, &"x".repeat(TOKEN_MAX + 1)).await;
    let other = signed(Algorithm::HS256, None, &claims(), &EncodingKey::from_secret(&[7; 32]));
    refused(&jwt, &other).await;
    // `{"alg":"none"}`.
    refused(&jwt, &format!("eyJhbGciOiJub25lIn0.{}.", body.split_once('.').unwrap().1)).await;
    let stronger = signed(Algorithm::HS512, None, &claims(), &EncodingKey::from_secret(SECRET.as_bytes()));
    refused(&jwt, &stronger).await;
}

#[tokio::test]
async fn tokens_with_critical_extensions_are_refused() {
    let jwt = Jwt::of(&with_secret()).await.unwrap().unwrap();
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let with_header = |header: &str| {
        let good = hs256(&claims());
        let body = good.split('.').nth(1).unwrap();
        let signed = format!("{}.{body}", URL_SAFE_NO_PAD.encode(header));
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &secret, Algorithm::HS256).unwrap();
        format!("{signed}.{signature}")
    };
    assert!(jwt.holder(&with_header(r#"{"alg":"HS256","typ":"JWT"}"#)).await.is_ok());
    for header in [r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, r#"{"alg":"HS256","crit":[]}"#] {
        assert!(refused(&jwt, &with_header(header)).await.contains("crit"));
    }
}

#[tokio::test]
async fn a_public_key_is_never_used_as_a_secret() {
    for algorithm in [Algorithm::RS256, Algorithm::EdDSA] {
        let pair = pair(algorithm);
        let settings = JwtSettings { public_key: Some(pair.public.clone()), ..settings() };
        let jwt = Jwt::of(&settings).await.unwrap().unwrap();
        assert!(
            jwt.holder(&signed(algorithm, None, &claims(), &pair.signing)).await.is_ok(),
            "{algorithm:?}"
        );
        let public = std::fs::read(&pair.public).unwrap();
        let forged = signed(Algorithm::HS256, None, &claims(), &EncodingKey::from_secret(&public));
        refused(&jwt, &forged).await;
    }
}

#[tokio::test]
async fn keys_of_a_set_are_found_by_their_id() {
    let (rsa, ed) = (pair(Algorithm::RS256), pair(Algorithm::EdDSA));
    let named = |jwk: &Value, kid: &str| {
        let mut jwk = jwk.clone();
        jwk["kid"] = json!(kid);
        jwk
    };
    let symmetric = json!({ "kty": "oct", "kid": "oct", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY" });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let set = json!({ "keys": [named(&rsa.jwk, "rsa"), named(&ed.jwk, "ed"), symmetric] });
    std::fs::write(&file, set.to_string()).unwrap();
    let settings = JwtSettings { jwks: Some(file.display().to_string()), ..settings() };
    let jwt = Jwt::of(&settings).await.unwrap().unwrap();
    for (algorithm, kid, key) in
        [(Algorithm::RS256, "rsa", &rsa.signing), (Algorithm::EdDSA, "ed", &ed.signing)]
    {
        assert!(jwt.holder(&signed(algorithm, Some(kid), &claims(), key)).await.is_ok(), "{kid}");
        refused(&jwt, &signed(algorithm, Some("other"), &claims(), key)).await;
    }
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    refused(&jwt, &signed(Algorithm::HS256, Some("oct"), &claims(), &secret)).await;
}

#[tokio::test]
async fn incomplete_settings_are_refused_at_the_start() {
    assert!(Jwt::of(&JwtSettings::default()).await.unwrap().is_none());
    let check = async |settings: JwtSettings, reason: &str| {
        let error = format!("{:#}", Jwt::of(&settings).await.expect_err("it is refused"));
        assert!(error.contains(reason), "{error}");
    };
    check(JwtSettings { audience: None, ..with_secret() }, "jwt-audience").await;
    check(JwtSettings { issuer: None, ..with_secret() }, "jwt-issuer").await;
    let short = Some(Zeroizing::new("short".to_owned()));
    check(JwtSettings { secret: short, ..settings() }, "could be guessed").await;
    check(JwtSettings { jwks: Some("http://id.example/jwks".into()), ..settings() }, "not https").await;
    check(JwtSettings { jwks: Some("/missing.json".into()), ..settings() }, "cannot use /missing.json").await;
    check(JwtSettings { public_key: Some("/missing.pem".into()), ..settings() }, "cannot read").await;
}
