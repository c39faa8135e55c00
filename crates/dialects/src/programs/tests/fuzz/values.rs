//! Values that end, begin or change something in one of the languages.

use super::random::Random;

/// `PWN` is a program, and a function of Python, that reports that it was started.
const PIECES: &[&str] = &[
    "PWN",
    "$(PWN)",
    "`PWN`",
    ";PWN;",
    "\nPWN\n",
    "|PWN",
    "&&PWN&&",
    "' PWN '",
    "\"; PWN; \"",
    "a[$(PWN)]",
    "${IFS}PWN",
    "<(PWN)",
    "$((PWN))",
    "PWN()",
    "'+PWN()+'",
    "\"+PWN()+\"",
    "{PWN()}",
    "\"\"\"+PWN()+\"\"\"",
    "'''\nPWN()\n'''",
    "\\",
    "'",
    "\"",
    "`",
    "$",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "&",
    "|",
    ";",
    "#",
    "!",
    "*",
    "?",
    "~",
    "=",
    "-",
    "-n",
    "--",
    "%",
    "%s",
    "\n",
    "\r",
    "\t",
    " ",
    "\u{1}",
    "\u{7f}",
    "é",
    "😀",
    "\u{2028}",
    "\u{a0}",
    "\nE\n",
    "E",
    "\nWINDLASS_END_0\nPWN\n",
    "$v",
    "${v}",
    "$1",
    "{{ x }}",
    "{% x %}",
    "{#",
    "fi",
    "done",
    "esac",
    ";;",
    "\\n",
    "\\x41",
    "\\N{BULLET}",
    "7",
    "0",
    "a",
    "text",
];

/// Values that are not empty, have no NUL, and do not end with a newline, which `$( )` would remove.
pub(super) fn hostile(random: &mut Random) -> String {
    if random.below(5) == 0 {
        return "a[$(PWN)]".to_owned();
    }
    let mut value: String = (0..1 + random.below(6)).map(|_| random.one(PIECES)).collect();
    if value.ends_with(['\n', '\r']) {
        value.push('.');
    }
    value
}
