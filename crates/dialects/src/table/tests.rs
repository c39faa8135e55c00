//! A dialect that only tests have: a list of names is a chain of steps. It proves that a dialect is one row of the table.

use crate::adapters::Outside;
use crate::diagnostic::Problems;
use crate::document::Node;
use crate::manifest::{Hook, Lowered, Manifest};
use crate::table::{Compiler, Dialect, Dialects, Document, Identity};
use serde_json::json;
use windlass_kernel::net::{JoinArc, NetSpec, Policy, Step, Work};
use windlass_kernel::{Net, StepId};
use windlass_views::DialectView;

const TOY: Dialect = Dialect {
    name: "toy",
    shape: "a toy has a list `toys`",
    has_shape: |root| root.get("toys").is_some(),
    identity: Identity::ByContent { prefix: "toy_" },
    view: &DialectView::empty("toy"),
    nets_since: 0,
    older_nets_are_programs: false,
    compiler: Some(Compiler { schema: || json!({ "required": ["toys"] }), compile }),
};

fn compile(document: &Document<'_>, problems: &mut Problems) -> Lowered {
    let toys = document.root.get("toys").map(Node::items).unwrap_or_default();
    let mut steps = Vec::new();
    for (toy, next) in toys.iter().zip(1..) {
        let Some(name) = toy.text() else {
            problems.add("E0101", &toy.at, "a toy must be a name", None);
            continue;
        };
        let mut step = Step::new(name, Work::task(json!({ "tasks": [{ "label": "t", "kind": "shell" }] })));
        step.router.arcs.extend((next < toys.len()).then(|| JoinArc::to(StepId(next as u32))));
        steps.push(step);
    }
    let hook = Hook { method: "POST".to_owned(), path: "toys".to_owned(), require_auth: true };
    Lowered {
        name: Some("toys".to_owned()),
        net: Net::new(NetSpec { steps, policy: Policy::default() }).ok(),
        manifest: Manifest { hooks: vec![hook], ..Manifest::default() },
        ..Lowered::default()
    }
}

fn table() -> Vec<Dialect> {
    Dialects::builtin().0.iter().copied().chain([TOY]).collect()
}

#[test]
fn a_dialect_is_added_by_one_row() {
    let table = table();
    let dialects = Dialects(&table);
    let compiled = dialects.compile("toys: [ball, kite]", None, Outside::Unknown);
    assert_eq!(compiled.dialect, dialects.named("toy"));
    assert_eq!(compiled.net.expect("a net").steps().count(), 2);
    let programs: Vec<&str> = compiled.manifest.programs.iter().map(|used| used.step.as_str()).collect();
    assert_eq!(programs, ["ball", "kite"], "rights are checked without a word from the dialect");
    assert_eq!(compiled.manifest.hooks.len(), 1);
    let stored = serde_json::to_value(&compiled.manifest).expect("JSON");
    assert_eq!(serde_json::from_value::<Manifest>(stored).expect("a manifest"), compiled.manifest);
    assert!(dialects.named("toy").and_then(Dialect::schema).is_some());
}

#[test]
fn definitions_that_are_identified_by_their_content_never_change() {
    let table = table();
    let dialects = Dialects(&table);
    assert_eq!(dialects.content_prefixes().collect::<Vec<_>>(), ["pl_", "toy_"]);
    let immutable: Vec<&str> =
        dialects.supported().filter(|dialect| dialect.is_immutable()).map(Dialect::name).collect();
    assert_eq!(immutable, ["plan", "toy"]);
}

#[test]
fn problems_of_an_added_dialect_are_placed_and_its_shape_is_offered() {
    let table = table();
    let compiled = Dialects(&table).compile("toys: [ball, {}]", None, Outside::Unknown);
    assert_eq!((compiled.net.is_none(), compiled.diagnostics[0].path.as_str()), (true, "toys[1]"));
    let unknown = Dialects(&table).compile("games: []", None, Outside::Unknown);
    let hint = unknown.diagnostics[0].hint.clone().unwrap_or_default();
    assert!(hint.ends_with("; a toy has a list `toys`"), "{hint}");
    assert_eq!(crate::compile("toys: [ball]").dialect, None, "the program does not have it");
}
