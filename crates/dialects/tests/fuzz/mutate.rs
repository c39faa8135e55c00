//! Documents: good ones changed a little or a lot, and texts that were never one.

use crate::expressions;
use crate::random::Random;
use std::path::Path;

/// Pieces that mean something to YAML or to the language.
const PIECES: &[&str] = &[
    "- ",
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "\t",
    "\r\n",
    "{",
    "}",
    "[",
    "]",
    "|",
    ">",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!x ",
    "? ",
    "#",
    "'",
    "\"",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "~",
    "null",
    "true",
    "0x1f",
    "1e999",
    "-0",
    "\u{feff}",
    "\u{0}",
    "é",
    "🦀",
    "step",
    "next",
    "arcs",
    "when",
    "then",
    "else",
    "tool",
    "kind",
    "noop",
    "shell",
    "cmds",
    "spec",
    "policy",
    "rules",
    "do",
    "retry",
    "jump",
    "to",
    "loop",
    "in",
    "iterator",
    "mode",
    "parallel",
    "max_in_flight",
    "args",
    "input",
    "set_ctx",
    "set",
    "ctx.x",
    "iter.y",
    "workload",
    "workbook",
    "executor",
    "entry_step",
    "final_step",
    "metadata",
    "keychain",
    "previous",
    "{{ ctx.x }}",
    "{{",
    "}}",
    "{% if x %}",
    "{% raw %}",
    "{#",
    "#}",
    "${#x}",
    "99999999999999999999",
    "-1",
    "500ms",
    "nodes",
    "edges",
    "sourceHandle",
    "source",
    "target",
    "config",
    "data",
    "nodeType",
    "trigger",
    "conditional",
    "conditions",
    "operator",
    "dataSource",
    "loopType",
    "body",
    "done",
    "error",
    "ai_agent",
    "settings",
    "retryPolicy",
    "{{ nodes['a'].output }}",
    "{{ API_KEY }}",
    "{\"$secret\": \"x\"}",
];

/// Larger than this is refused by its size alone.
const LARGE_BYTES: usize = 5 << 20;

pub fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = [root.join("tests/fuzz/corpus"), root.join("../../examples")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|kind| kind == "yaml" || kind == "json"))
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).expect("a text")).collect()
}

pub fn document(random: &mut Random, corpus: &[String]) -> String {
    match random.below(20) {
        0 => bytes(random),
        1 => (0..random.below(60)).map(|_| random.one(PIECES)).collect(),
        2 => nested(random),
        3 if random.below(20) == 0 => large(random, corpus),
        4 => steps(random),
        5 => nodes(random),
        _ => {
            let mut text = corpus[random.below(corpus.len())].clone();
            for _ in 0..random.below(4) {
                text = changed(random, &text, corpus);
            }
            text
        }
    }
}

fn bytes(random: &mut Random) -> String {
    let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.below(256) as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One opener many times over.
fn nested(random: &mut Random) -> String {
    let opener = random.one(&["[", "{a: ", "- ", "\"", "&a [*a, ", "? ", "a:\n ", "!!x ", "{{ ", "("]);
    let around = random.one(&["", "workflow: ", "workflow:\n- step: a\n  next: ", "workload: "]);
    format!("{around}{}", opener.repeat(1 + random.below(3_000)))
}

/// A text near the bounds of what is read at all.
fn large(random: &mut Random, corpus: &[String]) -> String {
    let (head, unit) = match random.below(7) {
        0 => ("metadata: {name: t}\nworkflow:\n".to_owned(), "- {step: s, next: s}\n".to_owned()),
        1 => ("a: &a [x, x, x, x, x, x, x, x]\nworkflow:\n".to_owned(), "- *a\n".to_owned()),
        2 => ("workload:\n  x: \"".to_owned(), "{{ a }} ".to_owned()),
        3 => ("workflow:\n- step: a\n  tool: {kind: shell, command: '".to_owned(), "{{ b ~ c }}".to_owned()),
        4 => ("nodes:\n".to_owned(), "- {id: n, type: loop, config: {loopType: count}}\n".to_owned()),
        5 => {
            let nodes =
                "nodes: [{id: a, type: trigger}, {id: b, type: delay, config: {duration: 1}}]\nedges:\n";
            (nodes.to_owned(), "- {source: a, target: b}\n".to_owned())
        }
        _ => (String::new(), corpus[random.below(corpus.len())].clone()),
    };
    let times = (1 + random.below(LARGE_BYTES)) / unit.len();
    format!("{head}{}", unit.repeat(times))
}

/// A playbook of many steps with arcs anywhere.
fn steps(random: &mut Random) -> String {
    let count = 1 + random.below(60);
    let mut text = String::from("metadata: {name: t}\nworkflow:\n");
    for step in 0..count {
        let arcs: Vec<String> = (0..random.below(4))
            .map(|_| {
                let when = serde_json::Value::from(expressions::expression(random));
                let guard = if random.below(2) == 0 { String::new() } else { format!(", when: {when}") };
                format!("{{step: s{}{guard}}}", random.below(count))
            })
            .collect();
        let mode = random.one(&["exclusive", "inclusive"]);
        text +=
            &format!("- {{step: s{step}, next: {{spec: {{mode: {mode}}}, arcs: [{}]}}}}\n", arcs.join(", "));
    }
    text
}

/// A workflow of many nodes with edges anywhere, most of them forward.
fn nodes(random: &mut Random) -> String {
    let count = 1 + random.below(60);
    let mut text = String::from("name: t\nnodes:\n");
    for node in 0..count {
        let expression = serde_json::Value::from(expressions::expression(random));
        let kind = match random.below(9) {
            0 => "loop, config: {loopType: count, maxIterations: 3}".to_owned(),
            1 => format!("loop, config: {{loopType: while, condition: {expression}}}"),
            2 => format!(
                "conditional, config: {{conditions: [{{id: c, variable: {expression}, operator: equals, value: {expression}}}]}}"
            ),
            3 => format!("filter, config: {{dataSource: {expression}, condition: {expression}}}"),
            4 => format!("delay, config: {{duration: {expression}}}"),
            5 => "ai_agent, config: {model: m}".to_owned(),
            6 => format!(
                "code, config: {{language: python, code: {expression}, inputVariables: [{expression}]}}"
            ),
            _ => "shell, config: {command: x}".to_owned(),
        };
        text += &format!("- {{id: n{node}, type: {kind}}}\n");
    }
    text += "edges:\n";
    for _ in 0..random.below(count * 2) {
        let from = random.below(count);
        let to = if random.below(20) == 0 { random.below(count) } else { from + 1 + random.below(3) };
        let handle = random.one(&["null", "null", "body", "done", "error", "'true'", "c", "tools"]);
        text += &format!("- {{source: n{from}, target: n{}, sourceHandle: {handle}}}\n", to.min(count - 1));
    }
    text
}

fn changed(random: &mut Random, text: &str, corpus: &[String]) -> String {
    let (from, to) = span(random, text);
    let piece = match random.below(8) {
        0 => String::new(),
        1 => text[from..to].repeat(1 + random.below(5)),
        2 => {
            let other = &corpus[random.below(corpus.len())];
            let (from, to) = span(random, other);
            other[from..to].to_owned()
        }
        3 => return lines(random, text),
        4 => expressions::expression(random),
        5 => format!("{{{{ {} }}}}", expressions::expression(random)),
        6 => return text.replace('\n', random.one(&["\r\n", "\n", "\r", "\n\t"])),
        _ => random.one(PIECES).to_owned(),
    };
    let keeps = if random.below(2) == 0 { from } else { to };
    format!("{}{piece}{}", &text[..from], &text[keeps..])
}

/// Two lines change places, or one moves in or out.
fn lines(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return String::new();
    }
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(3) {
        0 => lines.swap(a, b),
        1 => lines[a] = format!("  {}", lines[a]),
        _ => lines[a] = lines[a].trim_start_matches(' ').to_owned(),
    }
    lines.join("\n") + "\n"
}

/// A short stretch between two characters.
fn span(random: &mut Random, text: &str) -> (usize, usize) {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = floor(random.below(text.len() + 1));
    (from, floor(from + random.below(40)).max(from))
}
