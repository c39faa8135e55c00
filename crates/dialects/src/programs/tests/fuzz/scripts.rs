//! Scripts of which every command prints its words. They do not split words, compare patterns or count letters, so they do
//! the same with any value.

use super::random::Random;

const LETTERS: &[&str] = &[
    "a", "b", "Z", "0", ".", ",", ":", "/", "-", "+", "%", "@", "^", "_", "é", "=", "]", "a#", "{q", "}", "!",
];
const ESCAPED: &[&str] =
    &["\\$", "\\\"", "\\'", "\\\\", "\\`", "\\ ", "\\;", "\\#", "\\&", "\\(", "\\n", "\\\n"];
const IN_SINGLE: &[&str] =
    &["a", " ", "\"", "`", "$", "$(", ")", "\\", "\n", "#", ";", "}", "E", "<<E", "*", "é"];
const IN_DOUBLE: &[&str] = &[
    "a", " ", "'", ")", "(", "#", ";", "}", "{q", "\n", "E", "*", "é", "\\\\", "\\\"", "\\$", "\\`", "\\a",
    "$ ", "\\\n",
];
const IN_HERE: &[&str] = &[
    "a", " ", "'", "\"", ")", "(", "#", "\n", "E ", " E", "}", "é", "\\\\", "\\$", "\\`", "\\a", "\t", "$ ",
];
const IN_LITERAL: &[&str] =
    &["a", " ", "'", "\"", "$v", "$(", ")", "`", "\\", "#", "\n", "E ", " E", "}", "é", "\t", "${", "\\\\"];
const COMMENTS: &[&str] =
    &["# it's {{ x }}\n", "# \" {{ y }} $( ` \\\n", "#\n", "# <<E {{ x }}\n", "\t# case x in a) {{ x }}\n"];

pub(super) fn script(random: &mut Random, bash: bool) -> String {
    let mut writer = Writer { random, bash };
    let depth = writer.random.below(4);
    let script: String = (0..1 + writer.random.below(3)).map(|_| writer.line(depth)).collect();
    // These would be tags of templates.
    [("{{{", "{ {{"), ("{#", "{ #"), ("{%", "{ %")]
        .iter()
        .fold(script, |script, (tag, text)| script.replace(tag, text))
}

struct Writer<'r> {
    random: &'r mut Random,
    bash: bool,
}

impl Writer<'_> {
    fn some(&mut self, most: usize, part: impl Fn(&mut Self) -> String) -> String {
        (0..1 + self.random.below(most)).map(|_| part(self)).collect()
    }

    fn of(&mut self, texts: &[&str]) -> String {
        self.random.one(texts).to_owned()
    }

    fn value(&mut self) -> String {
        self.of(&["{{ x }}", "{{ y }}"])
    }

    /// One or more whole lines.
    fn line(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple(0) + "\n";
        }
        match self.random.below(if self.bash { 20 } else { 15 }) {
            0..=2 => self.simple(depth) + "\n",
            3 => self.simple(depth) + &self.of(&["; ", " && ", " || ", ";\t"]) + &self.simple(depth) + "\n",
            4 | 5 => self.here(depth),
            6 => self.of(COMMENTS),
            7 => format!("if {}; then\n{}else\n{}fi\n", self.simple(0), self.lines(depth), self.lines(depth)),
            8 => format!(
                "for i in {} {}; do\n{}P \"$i\"\ndone\n",
                self.word(depth),
                self.word(depth),
                self.lines(depth)
            ),
            9 => self.case(depth),
            10 => format!("f() {{\n{}P \"$1\"\n}}\nf {}\n", self.lines(depth), self.word(depth)),
            11 => format!("({})\n", self.lines(depth)),
            12 => format!("{{ {}}} | cat\n", self.lines(depth)),
            13 => format!("v={}\nP \"$v\" \"${{v}}.\"\n", self.word(depth)),
            14 => format!("w={} v={} P {} # it's\n", self.word(depth), self.word(depth), self.word(depth)),
            15 => format!(
                "a=({} {}\n {})\nP \"${{a[@]}}\"\n",
                self.word(depth),
                self.word(depth),
                self.word(depth)
            ),
            16 => format!("cat <<< {}\n", self.word(depth)),
            17 => format!("cat <({})\n", self.simple(depth)),
            18 => {
                let word = self.double(1);
                format!("[[ {word} == {word} ]] && P 1\n")
            }
            _ => "(( {{ n }} + 1 > 2 )) && P 1\n".to_owned(),
        }
    }

    fn lines(&mut self, depth: usize) -> String {
        self.some(2, |writer| writer.line(depth - 1))
    }

    fn case(&mut self, depth: usize) -> String {
        let opening = self.of(&["", "("]);
        format!(
            "case {} in\n{opening}{}|zz) {};;\n*)\n{};;\nesac\n",
            self.word(1),
            self.word(1),
            self.simple(depth),
            self.lines(depth)
        )
    }

    /// Commands with here-documents, and the documents.
    fn here(&mut self, depth: usize) -> String {
        let (mut line, mut bodies) = (String::new(), String::new());
        let count = 1 + self.random.below(2);
        for number in 0..count {
            // Shells differ in where a document ends that has one with the same end inside.
            let end = format!("E{depth}{}", if number == 0 { "" } else { "'" });
            let (written, literal) = match (number, self.random.below(5)) {
                (0, 0 | 1) => (end.clone(), false),
                (0, 2) => (format!("-{end}"), false),
                (0, 3) => (format!("'{end}'"), true),
                (_, 0 | 1) => (format!("\\{}", end.replace('\'', "\\'")), true),
                _ => (format!("\"{end}\""), true),
            };
            line.push_str(if number == 0 { "" } else { "; " });
            // bash 5.2 itself loses a document before the last one of a line in `$( )` if a pipe follows it.
            let after = if number + 1 < count { 3 } else { 5 };
            let after = self.of(&["", " ", " 2>&1", " | cat", " && P \"it's\""][..after]);
            line.push_str(&format!("cat <<{written}{after}"));
            let body = if literal {
                self.some(6, |w| w.literal_piece())
            } else {
                self.some(6, |w| w.here_piece(depth))
            };
            bodies.push_str(&format!("{body}\n{end}\n"));
        }
        format!("{line}\n{bodies}")
    }

    fn literal_piece(&mut self) -> String {
        if self.random.below(4) == 0 { self.value() } else { self.of(IN_LITERAL) }
    }

    fn here_piece(&mut self, depth: usize) -> String {
        match self.random.below(8) {
            0 | 1 => self.value(),
            2 if depth > 1 => self.substitution(depth - 1),
            _ => self.of(IN_HERE),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let words = self.some(2, |writer| format!(" {}", writer.word(depth)));
        let before =
            self.of(&["P", "P", "P", "printf '[%s]'", "P\t", "\\P", "\"P\"", "command printf '%s.'"]);
        let after = self.of(&["", "", "", " | cat", " 2>&1", " # it's\n:", " >/dev/null", " \\\n"]);
        format!("{before}{words}{after}")
    }

    fn word(&mut self, depth: usize) -> String {
        self.some(4, |writer| writer.piece(depth))
    }

    fn piece(&mut self, depth: usize) -> String {
        match self.random.below(if self.bash { 12 } else { 11 }) {
            0 | 1 => self.of(LETTERS),
            2 => self.of(ESCAPED),
            3 | 4 => self.value(),
            5 => format!("\\{}", self.value()),
            6 => format!("'{}'", self.some(4, |writer| writer.single_piece())),
            7 | 8 => self.double(depth),
            9 => "$(( {{ n }} + 1 ))".to_owned(),
            10 => format!("\"${{u:-{}}}\"", self.some(2, |writer| writer.default_piece(depth))),
            _ => format!("$'{}'", self.some(3, |writer| writer.ansi_piece())),
        }
    }

    fn single_piece(&mut self) -> String {
        if self.random.below(3) == 0 { self.value() } else { self.of(IN_SINGLE) }
    }

    fn ansi_piece(&mut self) -> String {
        if self.random.below(3) == 0 {
            self.value()
        } else {
            self.of(&["\\'", "\\\\", "\\x41", "a", "\"", "\\n", "$", "`", ")"])
        }
    }

    fn default_piece(&mut self, depth: usize) -> String {
        match self.random.below(4) {
            0 => self.value(),
            1 if depth > 0 => self.substitution(depth - 1),
            _ => self.of(&["a", " ", "\\\\", "\\}", "\\$", "é", "{q", ")", "#"]),
        }
    }

    fn double(&mut self, depth: usize) -> String {
        format!("\"{}\"", self.some(5, |writer| writer.double_piece(depth)))
    }

    fn double_piece(&mut self, depth: usize) -> String {
        match self.random.below(10) {
            0..=2 => self.value(),
            3 => format!("\\{}", self.value()),
            4 => self.of(&["$v.", "${w}", "${v:+x}", "${v%@@}$#"]),
            5 | 6 if depth > 1 => self.substitution(depth - 1),
            5 | 6 if depth == 1 => self.backticks(0),
            _ => self.of(IN_DOUBLE),
        }
    }

    /// The output of commands, which ends with a sign that is no newline. A space keeps a subshell from being arithmetic.
    fn substitution(&mut self, depth: usize) -> String {
        format!("$( {}P .\n)", self.some(2, |writer| writer.line(depth)))
    }

    /// The same in backticks, as far as shells read both alike.
    fn backticks(&mut self, depth: usize) -> String {
        let lines = self.some(2, |writer| writer.line(depth)) + "P .";
        format!("`{}`", lines.replace('\\', "\\\\").replace('`', "\\`"))
    }
}
