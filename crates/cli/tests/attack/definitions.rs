//! Definitions that cost far more to compile than they have bytes.

use crate::rig::read_answer;
use crate::stage::Stage;
use reqwest::blocking::RequestBuilder;
use reqwest::{Method, StatusCode};
use std::time::{Duration, Instant};

/// Maximum memory of a server under requests to `POST /validate`. One unoptimised compilation takes up to 100 MiB, and
/// two run at once.
const MEMORY_MAX_MIB: u64 = 500;

/// An answer of another tenant. It took minutes before; this allows for a machine that runs other tests.
const PATIENCE: Duration = Duration::from_secs(10);

const HEAD: &str =
    "metadata: {name: a}\nworkflow:\n- step: start\n  tool:\n    kind: http\n    url: http://x\n    data:";

/// Returns documents of about 855 kB each.
fn bombs() -> Vec<(&'static str, String)> {
    let list = |item: &dyn Fn(usize) -> String, count: usize| {
        let items: Vec<String> = (0..count).map(item).collect();
        format!("{HEAD} [{}]\n", items.join(","))
    };
    let step = |number: usize| format!("- {{step: s{number}, next: [{{step: t{number}}}]}}\n");
    vec![
        ("a small expression in each of many texts", list(&|n| format!("\"{{{{x{n}}}}}\""), 80_000)),
        ("many texts of which each has an expression", list(&|_| "\"{{a}}b\"".to_owned(), 95_000)),
        ("one text of many expressions", format!("{HEAD}\n      x: \"{}\"\n", "{{a}}b".repeat(140_000))),
        ("one long expression", format!("{HEAD}\n      x: \"{{{{ [{}] }}}}\"\n", "a,".repeat(420_000))),
        (
            "texts repeated by aliases",
            format!("x: &a [{}]\n{HEAD}\n{}", vec!["\"{{a}}b\""; 9_000].join(","), "    - *a\n".repeat(9)),
        ),
        (
            "one long text repeated",
            format!("x: &a {}\n{HEAD}\n{}", "y".repeat(800_000), "    - *a\n".repeat(20)),
        ),
        (
            "errors without end under a long key",
            format!(
                "{HEAD}\n      ? {}\n      :\n{}",
                "k".repeat(400_000),
                "        - \"{{ ! }}\"\n".repeat(20_000)
            ),
        ),
        (
            "names that do not exist among many",
            format!("metadata: {{name: a}}\nworkflow:\n{}", (0..12_000).map(step).collect::<String>()),
        ),
        (
            "a large entry of the workbook, called often",
            format!(
                "metadata: {{name: a}}\nworkbook:\n- {{name: w, tool: {{kind: http, url: http://x, data: {}}}}}\nworkflow:\n{}",
                "z".repeat(400_000),
                (0..5_000)
                    .map(|n| format!("- {{step: s{n}, tool: {{kind: workbook, name: w}}}}\n"))
                    .collect::<String>()
            ),
        ),
        (
            "defaults of which each reads the next",
            format!(
                "metadata: {{name: a}}\nworkload: {{{}, a9000: 1}}\nworkflow:\n- {{step: s, tool: {{kind: noop}}}}\n",
                (0..9_000).map(|n| format!("a{n}: \"{{{{ a{} }}}}\"", n + 1)).collect::<Vec<_>>().join(", ")
            ),
        ),
        ("actions of which each reads the first of a long chain", chained_actions()),
        ("brackets", format!("{HEAD} {}\n", "[".repeat(400_000))),
    ]
}

/// The most actions and dependencies that a document may have; every action follows all before it.
fn chained_actions() -> String {
    let action = |n: usize| {
        let after: Vec<String> = (n.saturating_sub(4)..n).map(|before| format!("a{before}")).collect();
        let input = if n == 0 { "" } else { ", input: {v: '{{ actions.a0.output }}'}" };
        format!(
            "- {{actionId: a{n}, order: {}, operation: 'x:read', dependsOn: [{}]{input}}}\n",
            n + 1,
            after.join(", ")
        )
    };
    let actions: String = (0..5_000).map(action).collect();
    let adapters = "adapters: {operations: {'x:read': {kind: noop}}}";
    format!("schemaVersion: 1\nworkflowId: w\nname: w\nactions:\n{actions}{adapters}\n")
}

/// A request that another thread may send.
fn validation(stage: &Stage, token: &str, text: &str) -> RequestBuilder {
    let request = stage.server.bare(Method::POST, "/api/v1/validate").bearer_auth(token);
    request.header("Content-Type", "application/yaml").body(text.to_owned())
}

#[test]
fn a_viewer_cannot_fill_the_memory_by_validating() {
    let stage = Stage::new();
    let token = stage.token("viewer");
    for (name, bomb) in bombs() {
        let begun = Instant::now();
        // Six at once, as a client of one tenant would send them.
        std::thread::scope(|scope| {
            let send = |request: RequestBuilder| scope.spawn(move || read_answer(request.send().unwrap()));
            let sent: Vec<_> = (0..6).map(|_| send(validation(&stage, &token, &bomb))).collect();
            let waited = stage.bystander();
            assert!(waited < PATIENCE, "{name}: another tenant waited {waited:?}");
            assert_eq!(stage.server.get("/healthz").status(), StatusCode::OK);
            for answer in sent {
                let (status, answer) = answer.join().unwrap();
                assert!(
                    [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS].contains(&status),
                    "{name}: {answer}"
                );
                let bytes = answer.to_string().len();
                assert!(bytes < 200_000, "{name}: the answer has {bytes} bytes");
            }
        });
        let peak = stage.peak_mib();
        println!("{name}: {} bytes, {:?}, peak {peak} MiB", bomb.len(), begun.elapsed());
        assert!(peak < MEMORY_MAX_MIB, "{name}: {peak} MiB");
    }
}

#[test]
fn definitions_of_one_tenant_do_not_delay_those_of_another() {
    let stage = Stage::new();
    let token = stage.token("viewer");
    let bomb = format!("{HEAD} [{}]\n", vec!["\"{{a}}b\""; 9_900].join(","));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let request = validation(&stage, &token, &bomb);
            scope.spawn(move || read_answer(request.send().unwrap()));
        }
        for number in 0..5 {
            let begun = Instant::now();
            stage.server.define(&format!(
                "metadata: {{name: calm{number}}}\nworkflow:\n- {{step: a, tool: {{kind: noop}}}}\n"
            ));
            assert!(begun.elapsed() < PATIENCE, "an upload of another tenant waited {:?}", begun.elapsed());
        }
    });
}
