//! Nets as pictures.

use crate::compiled::{net, playbook};
use std::collections::BTreeMap;
use windlass_dialects::graph::{ArcRef, Format, Iterations, Mark, Marks, State, draw};
use windlass_kernel::StepId;

const STEPS: &str = r#"
- step: a
  next: {spec: {mode: inclusive}, arcs: [{step: b, when: "{{ ctx.n > 1 }}"}, c]}
- step: b
  tool: [{kind: shell, command: ls}, {kind: http, url: x}]
  loop: {in: "{{ workload.xs }}", iterator: x, spec: {mode: parallel, max_in_flight: 2}}
  next: [{step: b, when: ctx.again}, {step: c, when: "{{ event.name == 'step.done' }}"}, d]
- step: c
  tool: {kind: playbook, path: other/one}
  spec: {policy: {admit: {rules: [{when: ctx.ok, then: {allow: true}}]}}}
- step: d
  set_ctx: {n: 1}
"#;

fn text() -> String {
    playbook(STEPS).replace("workflow:", "executor: {spec: {final_step: d}}\nworkflow:")
}

fn drawn(format: Format) -> String {
    draw(&net(&text()), None, format).expect("a picture")
}

#[test]
fn mermaid_shows_guards_modes_gates_loops_entry_and_final_step() {
    let expected = r#"flowchart TD
  n0(["a<br/>noop<br/>takes every arc that matches"])
  n1["b<br/>shell · http<br/>for x in workload.xs, 2 at a time"]
  n2{{"c<br/>playbook other/one<br/>gate: ctx.ok"}}
  n3(["d<br/>sets n<br/>final step"])
  start0(( )) --> n0
  n0 ==>|"ctx.n #62; 1"| n1
  n0 ==> n2
  n1 -->|"1. ctx.again"| n1
  n1 -->|"2. event.name == 'step.done'"| n2
  n1 -->|"3. else"| n3
  classDef final stroke-width:4px
  class n3 final
"#;
    assert_eq!(drawn(Format::Mermaid), expected);
}

#[test]
fn json_has_whole_guards_beside_short_labels() {
    let guard = format!("ctx.window == 'open' and ctx.{} == 'two  words'", "x".repeat(60));
    let steps = format!("- step: a\n  next: [{{step: b, when: \"{{{{ {guard} }}}}\"}}, b]\n- step: b\n");
    let shown = draw(&net(&playbook(&steps)), None, Format::Json).expect("a picture");
    let graph: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let edges = graph["edges"].as_array().expect("edges");
    assert_eq!(edges[0]["label"].as_str().expect("a label").chars().last(), Some('…'));
    assert_eq!(edges[0]["guard"], guard.replace("  ", " "));
    assert_eq!((&edges[1]["label"], &edges[1]["guard"]), (&"2. else".into(), &serde_json::Value::Null));
}

#[test]
fn dot_shows_the_same() {
    let diagnostic = drawn(Format::Dot);
    for line in [
        r#"  n1 [shape=folder, label="b\nshell · http\nfor x in workload.xs, 2 at a time"];"#,
        r#"  n2 [shape=octagon, label="c\nplaybook other/one\ngate: ctx.ok"];"#,
        r#"  n3 [shape=box, label="d\nsets n\nfinal step", peripheries=2];"#,
        "  start0 -> n0;",
        r#"  n0 -> n1 [label="ctx.n > 1", penwidth=2];"#,
        r#"  n1 -> n1 [label="1. ctx.again"];"#,
    ] {
        assert!(diagnostic.lines().any(|found| found == line), "{line} is not in\n{diagnostic}");
    }
    assert!(diagnostic.starts_with("digraph net {\n") && diagnostic.ends_with("}\n"));
}

#[test]
fn an_execution_colours_its_steps_and_shows_how_often_they_fired() {
    let mark = |state, firings, failures| Mark { state, firings, failures, ..Mark::default() };
    let steps = BTreeMap::from([
        (StepId(0), Mark { duration_ms: Some(61_500), attempts: 2, ..mark(State::Completed, 1, 0) }),
        (
            StepId(1),
            Mark {
                duration_ms: Some(5),
                iterations: Some(Iterations { begun: 500, failed: 10, is_partial: false }),
                ..mark(State::Running, 3, 1)
            },
        ),
        (StepId(2), mark(State::Waiting, 0, 0)),
    ]);
    let arc = |from, arc| ArcRef { from: StepId(from), arc };
    let marks = Marks { steps, arcs: BTreeMap::from([(arc(0, 0), 1), (arc(1, 0), 2)]), ..Marks::default() };
    let draw = |format| draw(&net(&text()), Some(&marks), format).unwrap();
    let mermaid = draw(Format::Mermaid);
    assert!(
        mermaid.contains("at a time<br/>3 times · 1 failed · running · 500 iterations, 10 failed\"]"),
        "{mermaid}"
    );
    assert!(mermaid.contains("<br/>completed · 2 attempts · 1 min 1 s\"])"), "{mermaid}");
    assert!(
        mermaid.contains("  linkStyle 1,3 stroke-width:3px\n  linkStyle 2,4,5 stroke:#bbb,color:#888\n"),
        "{mermaid}"
    );
    for class in ["  class n0 completed\n", "  class n1 running\n", "  class n2 waiting\n"] {
        assert!(mermaid.contains(class), "{mermaid}");
    }
    assert!(!mermaid.contains("failed fill"), "only what is there has a colour: {mermaid}");
    assert!(
        draw(Format::Dot)
            .contains(r##"3 times · 1 failed · running · 500 iterations, 10 failed", fillcolor="#cfe2fb""##)
    );
    assert!(draw(Format::Dot).contains(r#"n0 -> n1 [label="ctx.n > 1", penwidth=2, penwidth=3];"#));
    assert!(draw(Format::Dot).contains(r##"n0 -> n2 [label="", penwidth=2, color="#bbbbbb""##));
    let svg = draw(Format::Svg);
    assert!(
        svg.contains("class=\"b running\"")
            && svg.contains(">3 times · 1 failed · running · 500 iterations, 10 failed</text>"),
        "{svg}"
    );
    let edges = |class: &str| svg.matches(&format!("class=\"{class}\" marker-end")).count();
    assert_eq!((edges("e i t"), edges("e i u"), edges("e k t"), edges("e u")), (1, 1, 1, 2), "{svg}");
    assert!(svg.contains(">1. ctx.again ×2</text>"), "{svg}");
}

/// Tags that are opened and closed one inside the other, all of those that pictures are made of.
fn is_well_formed(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("every tag is closed");
        assert!(!text.contains('>'), "text is escaped: {text}");
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).expect("a name");
        assert!(
            ["svg", "style", "defs", "marker", "path", "rect", "circle", "text", "title", "g"]
                .contains(&name),
            "{name}"
        );
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn svg_is_one_file_without_markup_from_the_definition() {
    let attack = r#"
- step: "<script>alert('1')</script>"
  tool: {kind: shell, command: ls}
  loop: {in: '{{ "</text><image href=x>" }}', iterator: i}
  next: [{step: "\"]; click n0 \"javascript:alert(1)\"", when: '{{ "<b onload=x>" == ctx["]]>&"] }}'}]
- step: "\"]; click n0 \"javascript:alert(1)\""
  tool: {kind: noop}
"#;
    let net = net(&playbook(attack));
    let svg = draw(&net, None, Format::Svg).unwrap();
    is_well_formed(&svg);
    assert!(svg.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"), "{svg}");
    assert!(!svg.contains("http") || svg.matches("http").count() == 1, "nothing is loaded from elsewhere");
    let mermaid = draw(&net, None, Format::Mermaid).unwrap();
    assert!(!mermaid.contains("<script") && !mermaid.contains("\"]; click"), "{mermaid}");
    let dot = draw(&net, None, Format::Dot).unwrap();
    assert!(dot.contains(r#"label="\"]; click n0 \"javascript:alert(1)\"\nnoop"]"#), "{dot}");
    is_well_formed(&drawn(Format::Svg));
}

#[test]
fn boxes_do_not_overlap() {
    // Cycles, self loops, long arcs and steps that nothing leads to, and three hundred steps.
    for seed in 0..20_u64 {
        let steps = if seed == 0 { 300 } else { 4 + seed as usize };
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let arcs = |random: &mut dyn FnMut(usize) -> usize| -> Vec<String> {
            (0..random(4))
                .map(|n| format!("{{step: s{}, when: ctx.guard_{n} > {n}}}", random(steps)))
                .collect()
        };
        let step = |n: usize| {
            format!("- {{step: s{n}, tool: {{kind: noop}}, next: [{}]}}\n", arcs(&mut random).join(", "))
        };
        let net = net(&playbook(&(0..steps).map(step).collect::<String>()));
        let svg = draw(&net, None, Format::Svg).unwrap();
        is_well_formed(&svg);
        let boxes = boxes(&svg, "b");
        assert_eq!(boxes.len(), steps);
        for label in self::boxes(&svg, "p").iter().skip(1) {
            let hidden = boxes.iter().find(|of| !are_apart(label, of));
            assert!(hidden.is_none(), "seed {seed}: a label at {label:?} covers {hidden:?}");
        }
        for (place, a) in boxes.iter().enumerate() {
            for b in &boxes[place + 1..] {
                assert!(are_apart(a, b), "seed {seed}: {a:?} and {b:?}");
            }
        }
    }
}

fn are_apart(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1]
}

/// x, y, width and height of every rectangle of a class: `b` steps, `f` frames, `p` the page and then labels.
fn boxes(svg: &str, class: &str) -> Vec<[f64; 4]> {
    let number = |line: &str, key: &str| -> f64 {
        let rest = line.split(&format!(" {key}=\"")).nth(1).expect("an attribute");
        rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
    };
    let start = format!("<rect class=\"{class}\"");
    let rects = svg.lines().filter(|line| line.starts_with(&start));
    rects.map(|line| ["x", "y", "width", "height"].map(|key| number(line, key))).collect()
}

#[test]
fn what_is_too_large_to_lay_out_is_refused_and_still_written_as_text() {
    let steps: String = (0..2_001).map(|n| format!("- {{step: s{n}, tool: {{kind: noop}}}}\n")).collect();
    let net = net(&format!("metadata: {{name: a}}\nworkflow:\n{steps}"));
    let refused = draw(&net, None, Format::Svg).expect_err("it is too large");
    assert!(refused.to_string().contains("2001 steps"), "{refused}");
    assert!(draw(&net, None, Format::Dot).is_ok_and(|dot| dot.contains("s2000")));
}

#[test]
fn a_chain_of_forty_steps_fits_a_screen() {
    let step = |n: usize| {
        format!("- {{step: s{n}, tool: {{kind: noop}}, next: [{{step: s{}, when: ctx.ok}}]}}\n", n + 1)
    };
    let steps: String = (0..39).map(step).collect();
    let svg = draw(&net(&playbook(&format!("{steps}- {{step: s39}}\n"))), None, Format::Svg).unwrap();
    is_well_formed(&svg);
    let page = boxes(&svg, "p")[0];
    assert!(page[2] <= 1_400.0 && page[3] <= 960.0, "{page:?}");
    assert_eq!(boxes(&svg, "b").len(), 40);
    let columns: std::collections::BTreeSet<i64> =
        boxes(&svg, "b").iter().map(|of| (of[0] + of[2] / 2.0).round() as i64).collect();
    assert!((3..=8).contains(&columns.len()), "the middles of the columns are {columns:?}");
}

const LOOPS: &str = r#"
name: Loops
nodes:
- {id: start, type: trigger}
- {id: outer, type: loop, config: {loopType: for_each, dataSource: "{{ inputs.xs }}"}}
- {id: first, type: shell, config: {command: ls}}
- {id: inner, type: loop, config: {loopType: count, maxIterations: 2}}
- {id: deep, type: shell, config: {command: ls}}
- {id: pick, type: conditional, config: {conditions: [{id: many, variable: inputs.n, operator: greater_than, value: 1}]}}
- {id: yes, type: shell, config: {command: ls}}
- {id: no, type: delay, config: {duration: 1}}
- {id: ask, type: approval, config: {message: Go?}}
edges:
- {source: start, target: outer}
- {source: outer, target: first, sourceHandle: body}
- {source: first, target: inner}
- {source: inner, target: deep, sourceHandle: body}
- {source: outer, target: pick, sourceHandle: done}
- {source: pick, target: "yes", sourceHandle: "true"}
- {source: pick, target: "no", sourceHandle: "false"}
- {source: "yes", target: ask, sourceHandle: error}
"#;

#[test]
fn bodies_of_loops_are_framed_and_handles_are_named() {
    let net = net(LOOPS);
    let svg = draw(&net, None, Format::Svg).unwrap();
    is_well_formed(&svg);
    let (frames, steps) = (boxes(&svg, "f"), boxes(&svg, "b"));
    assert_eq!(frames.len(), 2, "{svg}");
    let holds = |outer: &[f64; 4], inner: &[f64; 4]| {
        outer[0] < inner[0]
            && outer[1] < inner[1]
            && inner[0] + inner[2] < outer[0] + outer[2]
            && inner[1] + inner[3] < outer[1] + outer[3]
    };
    assert!(holds(&frames[0], &frames[1]), "{frames:?}");
    for frame in &frames {
        let crossed = steps.iter().find(|step| !holds(frame, step) && !are_apart(frame, step));
        assert!(crossed.is_none(), "{crossed:?} is half in {frame:?}");
    }
    assert_eq!(steps.iter().filter(|step| holds(&frames[0], step)).count(), 3, "first, inner and deep");
    for text in ["each iteration of outer", "body", "done", "true", "false", "error"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} is not in {svg}");
    }
    for shape in ["task", "choice", "loop", "delay", "approval", "trigger"] {
        assert!(svg.contains(&format!(">{shape}</text>")), "the legend does not show {shape}");
    }
    let mermaid = draw(&net, None, Format::Mermaid).unwrap();
    assert!(mermaid.contains("  subgraph l1[\"loop outer\"]\n    n2[\"first<br/>shell\"]\n"), "{mermaid}");
    assert!(
        mermaid.contains("    subgraph l3[\"loop inner\"]\n      n4[")
            && mermaid.contains("n5 -->|\"true\"| n6"),
        "{mermaid}"
    );
    let dot = draw(&net, None, Format::Dot).unwrap();
    assert!(
        dot.contains("  subgraph cluster1 {\n    label=\"loop outer\"") && dot.contains("shape=diamond"),
        "{dot}"
    );
}

#[test]
fn loops_within_loops_have_a_bounded_number_of_frames() {
    let count = 400;
    let node =
        |n: usize| format!("- {{id: l{n}, type: loop, config: {{loopType: count, maxIterations: 2}}}}\n");
    let edge = |n: usize| format!("- {{source: l{n}, target: l{}, sourceHandle: body}}\n", n + 1);
    let text = format!(
        "name: Deep\nnodes:\n{}- {{id: l{count}, type: shell, config: {{command: ls}}}}\nedges:\n{}",
        (0..count).map(node).collect::<String>(),
        (0..count).map(edge).collect::<String>()
    );
    let net = net(&text);
    let svg = draw(&net, None, Format::Svg).unwrap();
    assert_eq!((boxes(&svg, "f").len(), boxes(&svg, "b").len()), (12, count + 1));
    assert!(draw(&net, None, Format::Mermaid).unwrap().len() < 200 * count);
}

#[test]
fn names_of_loops_and_handles_are_escaped_and_short() {
    let long = "\u{202e}名<b>\"]; x ".repeat(22);
    let flow = serde_json::json!({
        "name": "Hostile",
        "nodes": [
            { "id": "a", "name": long, "type": "loop", "config": { "loopType": "count", "maxIterations": 2 } },
            { "id": "b", "name": "</text><script>", "type": "conditional", "config": {
                "conditions": [{ "id": "<i>&\"", "variable": "inputs.n", "operator": "equals", "value": 1 }] } },
            { "id": "c", "type": "shell", "config": { "command": "ls" } },
        ],
        "edges": [
            { "source": "a", "target": "b", "sourceHandle": "body" },
            { "source": "b", "target": "c", "sourceHandle": "<i>&\"" },
        ],
    });
    let net = net(&flow.to_string());
    let svg = draw(&net, None, Format::Svg).unwrap();
    is_well_formed(&svg);
    assert!(svg.contains(">&lt;i&gt;&amp;&quot;</text>"), "the handle is shown as it is named: {svg}");
    let page = boxes(&svg, "p")[0];
    assert!(page[2] < 1_200.0, "a long name does not widen the picture: {page:?}");
    let mermaid = draw(&net, None, Format::Mermaid).unwrap();
    let dot = draw(&net, None, Format::Dot).unwrap();
    for text in [&svg, &mermaid, &dot] {
        assert!(!text.contains('\u{202e}'), "{text}");
    }
    assert!(
        !mermaid.contains("<b>") && !mermaid.contains("<script") && !mermaid.contains("\"]; x"),
        "{mermaid}"
    );
    assert!(dot.lines().all(|line| !line.contains("\"]; x") || line.contains("\\\"]; x")), "{dot}");
}
