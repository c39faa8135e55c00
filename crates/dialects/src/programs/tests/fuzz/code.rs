//! Python code that passes what it makes of its values to the function `P`.

use super::random::Random;

const QUOTES: &[&str] = &["'", "\"", "'''", "\"\"\""];
const PREFIXES: &[&str] = &["", "", "", "r", "b", "u", "f", "F", "rb", "Rb", "bR", "fr", "rF", "U"];
const IN_STRING: &[&str] = &[
    "a",
    " ",
    "'",
    "\"",
    "#",
    "\\\\",
    "\\'",
    "\\\"",
    "\\n",
    "\\x41",
    "\\101",
    "\\N{BULLET}",
    "\\u00e9",
    "\\d",
    "\\",
    "\\\n",
    "\n",
    "%s",
    "(",
    ")",
    "}",
    "é",
    "\t",
    "''",
    "\"\"",
    "\\0",
    "7",
];
const IN_BRACES: &[&str] = &[
    "{z}",
    "{z!r}",
    "{z:>5}",
    "{d['a']}",
    "{d[\"a\"]}",
    "{'}'}",
    "{ 'x' }",
    "{z:{'>'}9}",
    "{(lambda: 1)()}",
    "{z}}}",
    "{z=}",
    "{'#'}",
    "{\"'\"}",
];
const TOKENS: &[&str] = &[
    "{{ x }}",
    "{{ x }}",
    "{{ x }}",
    "{{ y }}",
    "'",
    "'",
    "\"",
    "\"",
    "'''",
    "\"\"\"",
    "f'",
    "f\"",
    "rb'",
    "r\"",
    "b'",
    "P(",
    ")",
    ")",
    "\n",
    "\n",
    " ",
    " ",
    "#",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    "+",
    "a",
    "z",
    "=",
    ":",
    "f'''",
    "f\"\"\"",
    "{z}",
    "lambda: ",
    "(",
    "\\\n",
    ";",
    "0",
    ".",
    "@",
    "if ",
    " else ",
    "for a in ",
];

pub(super) fn program(random: &mut Random) -> String {
    let mut code = String::new();
    for _ in 0..1 + random.below(3) {
        code.push_str(&line(random));
    }
    without_tags(&code)
}

pub(super) fn soup(random: &mut Random) -> String {
    let code: String = (0..1 + random.below(16)).map(|_| random.one(TOKENS)).collect();
    without_tags(&format!("P(1)\n{code}\n"))
}

/// These would be tags of templates.
fn without_tags(code: &str) -> String {
    let tags = [("{{{", "{ {{"), ("}}}", "}} }"), ("{#", "{ #"), ("{%", "{ %")];
    tags.iter().fold(code.to_owned(), |code, (tag, text)| code.replace(tag, text))
}

fn line(random: &mut Random) -> String {
    let depth = random.below(3);
    match random.below(8) {
        0 => format!("# it's \"{} '''\n", value(random)),
        1 => format!("a = {}\nP(a)\n", expression(random, depth)),
        2 => {
            format!("def f(a={}):\n    {}\n    return a\nP(f())\n", expression(random, depth), string(random))
        }
        3 => format!("if P({}):\n    pass  # {}'\n", expression(random, depth), value(random)),
        4 => format!(
            "P({},  # {}\n  {})\n",
            expression(random, depth),
            value(random),
            expression(random, depth)
        ),
        5 => format!("P({} \\\n  )\n", string(random)),
        6 => format!("P(1); P({}) # '''\n", expression(random, depth)),
        _ => format!("P({}, {})\n", expression(random, depth), string(random)),
    }
}

fn value(random: &mut Random) -> String {
    random.one(&["{{ x }}", "{{ y }}"]).to_owned()
}

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return if random.below(3) == 0 { value(random) } else { string(random) };
    }
    let (a, b) = (expression(random, depth - 1), expression(random, depth - 1));
    match random.below(9) {
        0 => format!("[{a}, {b}]"),
        1 => format!("({a}, {b},)"),
        2 => format!("{{1: {a}, 2: {b} }}"),
        3 => format!("{a} + {b}"),
        4 => format!("({a}\n+ {b})"),
        5 => format!("(lambda a: a)({a})"),
        6 => format!("{} {}", string(random), string(random)),
        7 => format!("[{a} for a in [{b}]]"),
        _ => format!("{{{{ n }}}} * [{a}]"),
    }
}

fn string(random: &mut Random) -> String {
    let (prefix, quotes) = (random.one(PREFIXES), random.one(QUOTES));
    let mut body = String::new();
    for _ in 0..random.below(6) {
        match random.below(6) {
            0 | 1 => body.push_str(&value(random)),
            2 if prefix.contains(['f', 'F']) => body.push_str(random.one(IN_BRACES)),
            _ => body.push_str(random.one(IN_STRING)),
        }
    }
    format!("{prefix}{quotes}{body}{quotes}")
}
