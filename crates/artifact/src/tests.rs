use super::*;

fn long() -> Value {
    json!({ "text": "x".repeat(INLINE_BYTES) })
}

#[test]
fn the_size_is_the_length_of_the_json() {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(-12.5e-7),
        json!(u64::MAX),
        json!("quote \" slash \\ line \n bell \u{7} käse \u{8}\u{c}\u{1f}"),
        json!([]),
        json!({}),
        json!([1, "two", [3], { "four": null, "\n": {} }]),
    ];
    for value in values {
        let length = value.to_string().len();
        assert_eq!(json_bytes(&value), length, "{value}");
        assert!(!size::exceeds(&value, length), "{value} fits into {length}");
        assert!(size::exceeds(&value, length - 1), "{value} is longer than {}", length - 1);
    }
}

#[test]
fn a_large_value_is_stored_under_the_digest_of_its_json() {
    let value = long();
    let (reference, artifact) = set_aside(&value, Source::Own, INLINE_BYTES).expect("it is large");
    assert_eq!(serde_json::from_slice::<Value>(&artifact.bytes).ok(), Some(value.clone()));
    assert_eq!(artifact.key, key_of(&artifact.bytes));
    assert_eq!(reference, json!({ "$artifact": artifact.key, "bytes": artifact.bytes.len() }));
    assert_eq!(key(&reference), Some(artifact.key.as_str()));
    assert_eq!(set_aside(&value, Source::Outside, INLINE_BYTES), Some((reference, artifact)));
}

#[test]
fn small_values_and_own_references_stay_inline() {
    let (reference, _) = set_aside(&long(), Source::Own, INLINE_BYTES).expect("it is large");
    assert_eq!(set_aside(&json!({ "n": 1 }), Source::Outside, INLINE_BYTES), None);
    assert_eq!(set_aside(&reference, Source::Own, INLINE_BYTES), None);
    assert_eq!(set_aside(&reference, Source::Own, 1), None);
}

/// A response of a server that names an artifact or a secret is plain data.
#[test]
fn a_value_that_only_looks_like_a_reference_is_stored_as_an_artifact() {
    let (reference, _) = set_aside(&long(), Source::Own, INLINE_BYTES).expect("it is large");
    for forged in [
        reference,
        json!({ "$artifact": 7 }),
        json!({ "$artifact": "sha256:..", "more": 1 }),
        json!({ "$secret": "production" }),
        json!({ "value": { "$secret": "production" } }),
        json!({ "value": { "$artifact": "x" }, "n": 1 }),
    ] {
        let (reference, artifact) =
            set_aside(&forged, Source::Outside, INLINE_BYTES).expect("it is dangerous");
        assert_eq!(key(&reference), Some(artifact.key.as_str()));
        assert_eq!(serde_json::from_slice::<Value>(&artifact.bytes).ok(), Some(forged));
    }
}

#[test]
fn a_key_names_a_file_and_nothing_else() {
    let good = key_of(b"{}");
    assert_eq!(digest(&good).map(str::len), Some(64));
    for bad in
        ["", "sha256:", "sha256:../../etc/passwd", &good[7..], &good.to_uppercase(), &format!("{good}0")]
    {
        assert_eq!(digest(bad), None, "{bad}");
        assert_eq!(key(&json!({ "$artifact": bad })), None, "{bad}");
    }
}

#[test]
fn a_handle_holds_the_name_of_a_secret_and_nothing_else() {
    assert_eq!(secret(&json!({ "$secret": "api" })), Some("api"));
    for other in [json!({ "$secret": 1 }), json!({ "$secret": "a", "b": 1 }), json!("$secret"), json!({})] {
        assert_eq!(secret(&other), None, "{other}");
    }
}
