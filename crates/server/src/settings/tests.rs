use super::*;

fn gathered(flags: &[(&'static str, &str)], variables: &[(&str, &str)]) -> Result<Settings, BadSetting> {
    let flags = flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    let variable = |asked: &str| {
        let found = variables.iter().find(|(name, _)| *name == asked);
        found.map(|(_, text)| (*text).to_owned())
    };
    Settings::load(&flags, variable)
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    assert_eq!(gathered(&[("data", data)], &[]).unwrap().readers, 4);
    std::fs::write(folder.path().join(FILE), "readers = 5\nbody-limit = \"1KiB\"\n").unwrap();
    let settings = gathered(&[("data", data)], &[]).unwrap();
    assert_eq!((settings.readers, settings.body_limit), (5, 1_024));
    let settings =
        gathered(&[("data", data)], &[("WINDLASS_READERS", "6"), ("WINDLASS_BODY_LIMIT", "")]).unwrap();
    assert_eq!((settings.readers, settings.body_limit), (6, 1_024));
    let settings = gathered(&[("data", data), ("readers", "7")], &[("WINDLASS_READERS", "6")]).unwrap();
    assert_eq!(settings.readers, 7);
}

#[test]
fn an_invalid_setting_is_reported_with_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let check = |flags: &[(&'static str, &str)], variables: &[(&str, &str)], parts: &[&str]| {
        let error = gathered(flags, variables).expect_err("it is refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{error}: {part}");
        }
    };
    check(&[("listen", "nowhere")], &[], &["--listen: `nowhere` is not an address"]);
    check(&[], &[("WINDLASS_HEADER_TIMEOUT", "soon")], &["WINDLASS_HEADER_TIMEOUT: `soon` is not a time"]);
    check(&[], &[("WINDLASS_BODY_LIMIT", "4MB")], &["`4MB` is not a number of bytes"]);
    check(&[("readers", "0")], &[], &["--readers: `0` is not an integer above 0"]);
    check(&[("slots", "-1")], &[], &["--slots: `-1` is not an integer"]);
    check(&[("tls-cert", "a.pem")], &[], &["TLS needs both"]);
    check(&[("config", "missing.toml")], &[], &["the file missing.toml does not exist"]);
    check(&[("egress-allow", "10.0.0.0/99")], &[], &["--egress-allow", "is not a range of addresses"]);
    check(&[("public-url", "windlass.example.com")], &[], &["is not a URL"]);
    for list in ["*", "A B", "A*B", "A=1"] {
        check(&[("env-secrets", list)], &[], &["--env-secrets", "is not a list of variables"]);
    }
    check(&[("log-format", "xml")], &[], &["`xml` is not text or json"]);
    std::fs::write(folder.path().join(FILE), "reader = 5").unwrap();
    check(&[("data", data)], &[], &["windlass.toml: unknown setting `reader`"]);
    std::fs::write(folder.path().join(FILE), "readers = 5.5").unwrap();
    check(&[("data", data)], &[], &["`readers` must be a string, an integer"]);
    std::fs::write(folder.path().join(FILE), "data = \"elsewhere\"").unwrap();
    check(&[("data", data)], &[], &["unknown setting `data`"]);
}

#[test]
fn a_public_address_needs_tls_or_the_flag() {
    let error = gathered(&[("listen", "0.0.0.0:7070")], &[]).expect_err("it is refused").to_string();
    assert!(error.contains("--tls-cert") && error.contains("--allow-public-http"), "{error}");
    assert!(gathered(&[("listen", "192.0.2.1:7070")], &[]).is_err());
    assert!(gathered(&[("listen", "0.0.0.0:7070"), ("allow-public-http", "true")], &[]).is_ok());
    assert!(gathered(&[("listen", "[::]:7070"), ("tls-cert", "a"), ("tls-key", "b")], &[]).is_ok());
    assert!(gathered(&[("listen", "[::1]:7070")], &[]).is_ok());
}

#[test]
fn a_secret_is_not_shown() {
    let settings = gathered(&[], &[("WINDLASS_JWT_SECRET", "hunter2hunter2")]).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert_eq!(settings.jwt.secret.unwrap().as_str(), "hunter2hunter2");
}

#[test]
fn every_setting_is_read() {
    let sources = [include_str!("mod.rs"), include_str!("parse.rs")];
    let is_read = |name: &str| sources.iter().any(|source| source.contains(&format!("\"{name}\"")));
    let named = SETTINGS.iter().map(|setting| setting.name).filter(|name| ![DATA, CONFIG].contains(name));
    let unread: Vec<&str> = named.filter(|name| !is_read(name)).collect();
    assert!(unread.is_empty(), "no code reads {}: add it to `Settings::read`", unread.join(", "));
}

/// The rows of docs/settings.md.
fn documented() -> String {
    let rows = SETTINGS.iter().map(|setting| {
        let flag = if setting.is_flag() { format!("`--{}`", setting.name) } else { "–".to_owned() };
        let key = if [DATA, CONFIG].contains(&setting.name) {
            "–".to_owned()
        } else {
            format!("`{}`", setting.name)
        };
        let default =
            if setting.default.is_empty() { "–".to_owned() } else { format!("`{}`", setting.default) };
        format!("| {flag} | `{}` | {key} | {default} | {} |\n", setting.variable(), setting.what)
    });
    rows.collect()
}

#[test]
fn the_document_has_the_table() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, after) = text.split_once("|---|---|---|---|---|\n").expect("there is a table");
    let table: String = after.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
    assert_eq!(table, documented(), "docs/settings.md must have these rows:\n{}", documented());
}
