//! Canonical JSON (RFC 8785): members sorted by their UTF-16 units, no whitespace, numbers as in JavaScript. A hash or
//! a signature over it can be checked in any language, for any whitespace of the original text.

use serde_json::{Number, Value};
use std::fmt::Write;

/// Returns the canonical text of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Writes a value. The function is recursive, because the depth of values is bounded when they are parsed.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            text.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(key, text);
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for symbol in string.chars() {
        match symbol {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            // Writing to a string cannot fail.
            '\u{0}'..='\u{1f}' => drop(write!(text, "\\u{:04x}", u32::from(symbol))),
            _ => text.push(symbol),
        }
    }
    text.push('"');
}

/// Formats a number as a double: an integer without an exact double is written as the nearest one.
fn number_text(number: &Number) -> String {
    number.as_f64().map_or_else(|| number.to_string(), double_text)
}

/// Formats as `Number::toString` of ECMAScript: the shortest digits that parse to the same double, with a point or an exponent.
fn double_text(double: f64) -> String {
    if double == 0.0 {
        return "0".to_owned();
    }
    let shortest = shortest(double.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(|symbol| *symbol != '.').collect();
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let sign = if double < 0.0 { "-" } else { "" };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |wanted: i32| "0".repeat(usize::try_from(wanted).unwrap_or(0));
    let written = match point {
        _ if count <= point && point <= 21 => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{whole}.{part}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let plus = if point > 0 { "+" } else { "" };
            format!("{first}{dot}{rest}e{plus}{}", point - 1)
        }
    };
    format!("{sign}{written}")
}

/// Returns the fewest digits that parse to the same double; of two equally near ones, the even one.
fn shortest(double: f64) -> String {
    let found = format!("{double:e}");
    let digits = found.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let nearest = format!("{double:.*e}", digits.saturating_sub(1));
    if nearest.parse() == Ok(double) { nearest } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(given: f64, expected: &str) {
        assert_eq!(double_text(given), expected, "{given:e}");
    }

    #[test]
    fn numbers_are_written_as_in_the_samples_of_rfc_8785() {
        check(f64::from_bits(0x0000_0000_0000_0000), "0");
        check(f64::from_bits(0x8000_0000_0000_0000), "0");
        check(f64::from_bits(0x0000_0000_0000_0001), "5e-324");
        check(f64::from_bits(0x8000_0000_0000_0001), "-5e-324");
        check(f64::from_bits(0x7fef_ffff_ffff_ffff), "1.7976931348623157e+308");
        check(f64::from_bits(0x4340_0000_0000_0000), "9007199254740992");
        check(f64::from_bits(0xc340_0000_0000_0000), "-9007199254740992");
        check(f64::from_bits(0x4430_0000_0000_0000), "295147905179352830000");
        check(f64::from_bits(0x44b5_2d02_c7e1_4af5), "9.999999999999997e+22");
        check(f64::from_bits(0x44b5_2d02_c7e1_4af6), "1e+23");
        check(f64::from_bits(0x444b_1ae4_d6e2_ef4e), "999999999999999700000");
        check(f64::from_bits(0x444b_1ae4_d6e2_ef50), "1e+21");
        check(f64::from_bits(0x3eb0_c6f7_a0b5_ed8c), "9.999999999999997e-7");
        check(f64::from_bits(0x3eb0_c6f7_a0b5_ed8d), "0.000001");
        check(f64::from_bits(0x41b3_de43_5555_5553), "333333333.3333332");
        check(f64::from_bits(0xbecb_f647_612f_3696), "-0.0000033333333333333333");
        check(f64::from_bits(0x4314_3ff3_c1cb_0959), "1424953923781206.2");
        check(45.0, "45");
        check(-0.5, "-0.5");
    }

    #[test]
    fn members_are_sorted_by_utf_16_and_strings_are_escaped_minimally() {
        let value =
            json!({ "\u{fb33}": 1, "\u{1f600}": 2, "b": [true, null], "a\n": "\u{1}\"é\u{7f}\\", "": {} });
        let expected =
            "{\"\":{},\"a\\n\":\"\\u0001\\\"é\u{7f}\\\\\",\"b\":[true,null],\"\u{1f600}\":2,\"\u{fb33}\":1}";
        assert_eq!(canonical(&value), expected);
    }

    #[test]
    fn integers_stay_integers_and_large_ones_are_doubles() {
        assert_eq!(canonical(&json!([1, -7, 9_007_199_254_740_991_u64, 1.0])), "[1,-7,9007199254740991,1]");
        assert_eq!(canonical(&json!(u64::MAX)), "18446744073709552000");
    }

    #[test]
    fn the_canonical_form_is_a_fixed_point() {
        let once = canonical(&json!({ "x": [1.5e300, "\t"], "a": { "z": 0.1, "b": -0.0 } }));
        let again: Value = serde_json::from_str(&once).expect("it is JSON");
        assert_eq!(canonical(&again), once);
    }
}
