//! Values in Python code. Outside of strings a value is a literal, inside of a string it is escaped as that kind of string
//! needs it, so that it has the meaning that its text has there and cannot end the string.

use super::Refusal;
use super::written::{Part, Written, parts};

/// A string of the code that is being read.
#[derive(Debug)]
struct Quoted {
    /// Prefix as in the source: `rb`.
    prefix: String,
    /// Quote of one or three characters.
    quotes: String,
}

impl Quoted {
    fn is(&self, kind: char) -> bool {
        self.prefix.contains([kind, kind.to_ascii_uppercase()])
    }
}

/// Returns the source of a template that makes literals of its values.
pub(crate) fn python(text: &str) -> Result<String, Refusal> {
    let parts = parts(text)?;
    let program = parts.iter().any(|part| matches!(part, Part::Text(text) if !text.trim().is_empty()));
    if let (false, Some(Part::Value(source))) = (program, parts.first()) {
        let hint = "write the code, and pass values by `args`";
        return Err(Refusal::new(source, "and nothing else: it would be the program", hint));
    }
    let mut code = Code {
        parts: &parts,
        out: Written::default(),
        quoted: None,
        comment: false,
        braces: 0,
        last: None,
        escapes: false,
        quotes_before: 0,
        skips: 0,
    };
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Text(text) => code.text(text),
            Part::Choice { source, .. } => code.out.expression(source),
            Part::Value(source) => code.value(place, source)?,
        }
    }
    Ok(code.out.source())
}

struct Code<'p> {
    parts: &'p [Part],
    out: Written,
    quoted: Option<Quoted>,
    comment: bool,
    /// Open braces of an f-string: there it is code.
    braces: usize,
    /// The sign before, as far as it is text.
    last: Option<char>,
    /// The sign before is a backslash that would change what follows.
    escapes: bool,
    /// Signs of quotes right before, which do not end the string.
    quotes_before: usize,
    /// Signs that end a string which is ended already.
    skips: usize,
}

impl Code<'_> {
    fn text(&mut self, text: &str) {
        let signs: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < signs.len() {
            let was_quoted = self.quoted.is_some();
            let length = self.step(&signs, at).clamp(1, signs.len() - at);
            let stays = self.quoted.as_ref().filter(|_| was_quoted && length == 1);
            self.quotes_before = match stays.is_some_and(|quoted| quoted.quotes.starts_with(signs[at])) {
                true => self.quotes_before + 1,
                false => 0,
            };
            let skipped = std::mem::take(&mut self.skips);
            signs[at + skipped..at + length].iter().for_each(|sign| self.out.sign(*sign));
            self.last = Some(signs[at + length - 1]);
            self.escapes = signs[at] == '\\' && length == 1 && self.quoted.is_some();
            at += length;
        }
    }

    /// Looks at the next signs; returns how many of them belong together.
    fn step(&mut self, signs: &[char], at: usize) -> usize {
        let sign = signs[at];
        match &self.quoted {
            None if self.comment => {
                self.comment = sign != '\n';
                1
            }
            None if sign == '#' => {
                self.comment = true;
                1
            }
            None if sign == '"' || sign == '\'' => {
                let quotes = quotes(signs, at);
                self.quoted =
                    Some(Quoted { prefix: prefix(signs, at), quotes: sign.to_string().repeat(quotes) });
                quotes
            }
            None => 1,
            Some(_) if sign == '\\' => 2,
            Some(quoted) if quoted.is('f') && (sign == '{' || sign == '}') => {
                let doubled = self.braces == 0 && signs.get(at + 1) == Some(&sign);
                if doubled {
                    return 2;
                }
                self.braces = if sign == '{' { self.braces + 1 } else { self.braces.saturating_sub(1) };
                1
            }
            Some(quoted)
                if self.braces > 0 && quoted.quotes.starts_with(sign) && quoted.quotes.len() == 1 =>
            {
                // A string inside of the expression, as newer versions allow it, or an f-string that never ends.
                let end = signs[at + 1..].iter().position(|next| *next == sign || *next == '\n');
                end.map_or(1, |end| end + 2)
            }
            Some(quoted) => {
                let length = quoted.quotes.chars().count();
                let ends = quoted
                    .quotes
                    .chars()
                    .enumerate()
                    .all(|(ahead, quote)| signs.get(at + ahead) == Some(&quote));
                // A string in single signs cannot go over the end of its line.
                if ends || (sign == '\n' && length == 1) {
                    self.quoted = None;
                    self.braces = 0;
                }
                if ends { length } else { 1 }
            }
        }
    }

    fn value(&mut self, place: usize, source: &str) -> Result<(), Refusal> {
        match &self.quoted {
            None if self.comment => self.out.expression(&format!("({source}) | in_python")),
            None => self.literal(place, source)?,
            Some(_) if self.braces > 0 => {
                let hint = "give it a name outside of the string: `value = {{ … }}`";
                return Err(Refusal::new(source, "inside of the braces of an f-string", hint));
            }
            Some(quoted) if quoted.is('r') && self.escapes => {
                let hint = "use a string that is not raw, with two backslashes";
                return Err(Refusal::new(source, "right after a backslash in a raw string", hint));
            }
            // A raw string has no escapes: a value interrupts it by a string that is not raw.
            Some(quoted) if quoted.is('r') => self.interrupted(place, source),
            Some(quoted) => {
                let filter = if quoted.is('b') { "in_python_bytes" } else { "in_python" };
                // A backslash before it is one, and no escape.
                if self.escapes {
                    self.out.sign('\\');
                }
                self.out.expression(&format!("({source}) | {filter}"));
            }
        }
        (self.last, self.escapes, self.quotes_before) = (Some('_'), false, 0);
        Ok(())
    }

    /// A value in a raw string: the string ends before it and begins anew after it, unless it ends there anyway.
    fn interrupted(&mut self, place: usize, source: &str) {
        let Some(Quoted { prefix, quotes }) = &self.quoted else { return };
        let (kind, filter) = match prefix.contains(['b', 'B']) {
            true => ("b", "in_python_bytes"),
            false => ("", "in_python"),
        };
        // Quotes at the end of a part would end it too early: they belong to the part that is not raw.
        let before = format!("\\{}", &quotes[..1]).repeat(self.quotes_before);
        let (end, begin) = (format!("{quotes} {kind}\"{before}"), format!("\" {prefix}{quotes}"));
        let ends =
            matches!(self.parts.get(place + 1), Some(Part::Text(text)) if text.starts_with(quotes.as_str()));
        self.skips = if ends { quotes.len() } else { 0 };
        self.out.take_back(self.quotes_before);
        self.out.text(&end);
        self.out.expression(&format!("({source}) | {filter}"));
        self.out.text(if ends { "\"" } else { &begin });
    }

    fn literal(&mut self, place: usize, source: &str) -> Result<(), Refusal> {
        let next = match self.parts.get(place + 1) {
            Some(Part::Text(text)) => text.chars().next(),
            Some(Part::Choice { .. } | Part::Value(_)) => Some('_'),
            None => None,
        };
        let part_of_name = |sign: char| sign == '_' || sign.is_alphanumeric() || "\"'".contains(sign);
        let before = self.last.is_some_and(|sign| part_of_name(sign) || sign == '.');
        if before || next.is_some_and(|sign| part_of_name(sign) || sign == '(') {
            let hint = "a value cannot be a part of a name; use a dictionary, or `getattr(object, {{ … }})`";
            return Err(Refusal::new(source, "as a part of the program", hint));
        }
        self.out.expression(&format!("({}) | as_python", without_json(source)));
        Ok(())
    }
}

fn quotes(signs: &[char], at: usize) -> usize {
    let same = |ahead: usize| signs.get(at + ahead) == Some(&signs[at]);
    if same(1) && same(2) { 3 } else { 1 }
}

/// Letters right before the quotes that say which kind of string it is.
fn prefix(signs: &[char], at: usize) -> String {
    let letters: String =
        signs[..at].iter().rev().take_while(|sign| sign.is_alphanumeric() || **sign == '_').collect();
    let kind = |sign: char| "rbuft".contains(sign.to_ascii_lowercase());
    match letters.len() <= 2 && letters.chars().all(kind) {
        true => letters.chars().rev().collect(),
        false => String::new(),
    }
}

/// `{{ x | tojson }}` outside of strings means the value: JSON was the nearest thing to a literal.
fn without_json(source: &str) -> &str {
    let mut bare = source.trim();
    loop {
        let Some((before, filter)) = bare.rsplit_once('|') else { return bare };
        let operators = before.contains(['~', '+', '*', '/', '%', '<', '>', '=', '!', ','])
            || before
                .split_whitespace()
                .any(|word| ["if", "and", "or", "not", "in", "is", "-"].contains(&word));
        if !["tojson", "tojson()", "safe"].contains(&filter.trim()) || operators {
            return bare;
        }
        bare = before.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: &str) {
        assert_eq!(python(code).unwrap(), expected, "{code}");
    }

    #[test]
    fn a_value_is_a_literal_or_a_part_of_a_string() {
        check("x = {{ a }}", "x = {{ (a) | as_python }}");
        check("x = '{{ a }}'", "x = '{{ (a) | in_python }}'");
        check(
            "x = \"\"\"'{{ a }}\n\"{{ b }}\"\"\"\ny = {{ c }}",
            "x = \"\"\"'{{ (a) | in_python }}\n\"{{ (b) | in_python }}\"\"\"\ny = {{ (c) | as_python }}",
        );
        check("x = b'{{ a }}'", "x = b'{{ (a) | in_python_bytes }}'");
        check(
            "x = r'{{ a }}' + '\\'{{ b }}'",
            "x = r'' \"{{ (a) | in_python }}\" + '\\'{{ (b) | in_python }}'",
        );
        check(
            "x = 1 # it's {{ a }}\ny = {{ b }}",
            "x = 1 # it's {{ (a) | in_python }}\ny = {{ (b) | as_python }}",
        );
        check("x = f'{y} {{ a }}'", "x = f'{y} {{ (a) | in_python }}'");
        check("x = '\\{{ a }}'", "x = '\\\\{{ (a) | in_python }}'");
        check("x = '\\\\{{ a }}'", "x = '\\\\{{ (a) | in_python }}'");
        check("x = {{ a.b | tojson }}; y = {{ 1 + 1 }}", "x = {{ (a.b) | as_python }}; y = 2");
        check("x = {{ a ~ b | tojson }}", "x = {{ (a ~ b | tojson) | as_python }}");
        check("x = {{ 'True' if a else 'False' }}", "x = {{ 'True' if a else 'False' }}");
        check("plain = '{'", "plain = '{'");
    }

    #[test]
    fn where_a_value_would_be_the_program_it_is_refused() {
        for (code, place) in [
            ("{{ a }}", "and nothing else: it would be the program"),
            ("x_{{ a }} = 1", "as a part of the program"),
            ("x.{{ a }}", "as a part of the program"),
            ("{{ a }}(1)", "as a part of the program"),
            ("x = f'{ {{ a }} }'", "inside of the braces of an f-string"),
            ("x = r'\\{{ a }}'", "right after a backslash in a raw string"),
            ("{% if a %}x = 1{% endif %}", "around parts of a program"),
        ] {
            assert_eq!(python(code).unwrap_err().place, place, "{code}");
        }
    }

    /// Codes that set `x` to the value, or to its text.
    const PLACES: [(&str, bool); 26] = [
        ("x = {{ v }}", true),
        ("x = [{{ v }}, 1][0]", true),
        ("x = ({{ v | tojson }})", true),
        ("import json\nx = json.loads('{{ v | tojson }}')", true),
        ("import json\nx = json.loads(\"\"\"{{ v | tojson }}\"\"\")", true),
        ("def f(a={{ v }}):\n    return a\nx = f()", true),
        ("x = '{{ v }}'", false),
        ("x = \"{{ v }}\"", false),
        ("x = \'\'\'{{ v }}\'\'\'", false),
        ("x = \"\"\"{{ v }}\"\"\"", false),
        ("x = r'{{ v }}'", false),
        ("x = R\"\"\"{{ v }}\"\"\"", false),
        ("x = r'{{ v }}''a'[:-1]", false),
        ("x = '\\0{{ v }}'[1:]", false),
        ("x = b'\\0{{ v }}'[1:].decode()", false),
        ("x = r\"\"\"\"\"{{ v }}\"\"\"[2:]", false),
        ("x = b'{{ v }}'.decode()", false),
        ("x = rb'{{ v }}'.decode()", false),
        ("x = u'{{ v }}'", false),
        ("y = 1\nx = f'{y}{{ v }}'[1:]", false),
        ("x = rf'{{ v }}'", false),
        ("x = 'a' '{{ v }}'[1:]", false),
        ("x = '\\'{{ v }}'[1:]", false),
        ("# it's {{ v }}\nx = '{{ v }}' # \"{{ v }}", false),
        ("x = '\\\\{{ v }}'[1:]", false),
        ("x = '%s' % ('{{ v }}',)", false),
    ];

    #[test]
    fn hostile_values_are_data_in_every_place() {
        use serde_json::{Map, Value, json};
        let values = [
            json!("plain"),
            json!("7"),
            json!(""),
            json!("' + open('PWNED', 'w').name + '"),
            json!("\"\"\"\nimport os\nos.system('touch PWNED')\n\"\"\""),
            json!("{open('PWNED', 'w')}"),
            json!("{{ v }}{% x %}"),
            json!("\\"),
            json!("\\'\\\""),
            json!("a\nb\rc\t\u{0}\u{2028}é😀"),
            json!("%s %(x)s {0}"),
            json!("\\N{BULLET}\\x41\\u0041"),
            json!(null),
            json!(true),
            json!(-1.5),
            json!({ "a'\"": [1, null, false, "' + x"] }),
        ];
        let mut cases = Vec::new();
        for (code, whole) in PLACES {
            for value in values.iter().filter(|value| whole || value.is_string()) {
                let template = windlass_expr::Template::compile(&json!(python(code).unwrap())).unwrap();
                let rendered = template.render(&Map::from_iter([("v".to_owned(), value.clone())])).unwrap();
                cases.push(json!([rendered, value]));
            }
        }
        let harness = "import json, os, sys\nos.chdir(sys.argv[1])\nfor code, value in json.load(sys.stdin):\n    scope = {}\n    \
                       exec(code, scope)\n    assert scope['x'] == value, (code, value, scope['x'])\nassert not os.path.exists('PWNED')";
        let folder = std::env::temp_dir();
        let mut child = std::process::Command::new("python3")
            .args(["-c", harness])
            .arg(&folder)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, Value::Array(cases).to_string().as_bytes()).unwrap();
        drop(stdin);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    proptest::proptest! {
        /// Reading ends for every code.
        #[test]
        fn any_code_is_read(code in "([ -~\n]|\\{\\{ x \\}\\}|'\'\'|\"\"\"|rb'|f\"|#){0,60}") {
            let _ = python(&code);
        }
    }
}
