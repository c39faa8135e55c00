//! Meaning of plain scalars: the core schema of YAML 1.2. `yes`, `no`, `on` and `off` are strings.

use super::Kind;
use serde_json::Number;

pub(super) fn plain(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        _ => number(text).map_or_else(|| Kind::Text(text.to_owned()), Kind::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let radix = |prefix: &str, radix| {
        let digits = text.strip_prefix(prefix).filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, radix).ok().map(Number::from)
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(number);
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_decimal = text.len() - digits.len() <= 1
        && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    if !is_decimal {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let whole =
        unsigned.parse::<i64>().map(Number::from).or_else(|_| unsigned.parse::<u64>().map(Number::from));
    whole.ok().or_else(|| unsigned.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(format!("{:?}", plain(text)), expected, "{text}");
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        check("~", "Null");
        check("true", "Bool(true)");
        check("yes", "Text(\"yes\")");
        check("on", "Text(\"on\")");
        check("12", "Number(Number(12))");
        check("+12", "Number(Number(12))");
        check("-7", "Number(Number(-7))");
        check("18446744073709551615", "Number(Number(18446744073709551615))");
        check("0x1F", "Number(Number(31))");
        check("0o17", "Number(Number(15))");
        check("1.5", "Number(Number(1.5))");
        check("1e3", "Number(Number(1000.0))");
        for text in
            ["1.2.3", "2026-11-15", "1_000", "--1", ".", "-", "e5", ".inf", "1e999", "12h", "0x+1", "0xz"]
        {
            check(text, &format!("Text({text:?})"));
        }
    }
}
