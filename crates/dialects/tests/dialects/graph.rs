//! Nets as pictures.

use crate::compiled::{net, playbook};
use windlass_dialects::graph::{Format, Mark, Marks, State, draw};
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
fn dot_shows_the_same() {
    let diagnostic = drawn(Format::Dot);
    for line in [
        r#"  n1 [shape=box, label="b\nshell · http\nfor x in workload.xs, 2 at a time"];"#,
        r#"  n2 [shape=hexagon, label="c\nplaybook other/one\ngate: ctx.ok"];"#,
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
    let mark = |state, firings, failures| Mark { state, firings, failures };
    let marks = Marks::from([
        (StepId(0), mark(State::Completed, 1, 0)),
        (StepId(1), mark(State::Running, 3, 1)),
        (StepId(2), mark(State::Waiting, 0, 0)),
    ]);
    let draw = |format| draw(&net(&text()), Some(&marks), format).unwrap();
    let mermaid = draw(Format::Mermaid);
    assert!(mermaid.contains("at a time<br/>3 times, 1 failed, running\"]"), "{mermaid}");
    for class in ["  class n0 completed\n", "  class n1 running\n", "  class n2 waiting\n"] {
        assert!(mermaid.contains(class), "{mermaid}");
    }
    assert!(!mermaid.contains("failed fill"), "only what is there has a colour: {mermaid}");
    assert!(draw(Format::Dot).contains(r##"3 times, 1 failed, running", fillcolor="#cfe2fb""##));
    let svg = draw(Format::Svg);
    assert!(
        svg.contains("class=\"b running\"") && svg.contains(">3 times, 1 failed, running</text>"),
        "{svg}"
    );
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
fn nothing_lies_on_anything_else() {
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
        let boxes = boxes(&svg);
        assert_eq!(boxes.len(), steps);
        for (place, a) in boxes.iter().enumerate() {
            for b in &boxes[place + 1..] {
                let apart =
                    a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
                assert!(apart, "seed {seed}: {a:?} and {b:?}");
            }
        }
    }
}

/// x, y, width and height of every step's box.
fn boxes(svg: &str) -> Vec<[f64; 4]> {
    let number = |line: &str, key: &str| -> f64 {
        let rest = line.split(&format!(" {key}=\"")).nth(1).expect("an attribute");
        rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
    };
    let rects = svg.lines().filter(|line| line.starts_with("<rect class=\"b\""));
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
