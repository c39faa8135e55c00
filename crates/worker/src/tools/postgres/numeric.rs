//! Conversion of `numeric` from its binary form without loss: to a JSON number if that is exact, otherwise to a string.

use serde_json::{Number, Value};

const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;
const NEGATIVE: u16 = 0x4000;

pub(super) fn numeric(raw: &[u8]) -> Option<Value> {
    let word = |index: usize| Some(u16::from_be_bytes(*raw.get(index * 2..)?.first_chunk()?));
    let (count, weight, sign, scale) = (word(0)?, word(1)?.cast_signed(), word(2)?, word(3)?);
    let special = match sign {
        NAN => Some("NaN"),
        INFINITY => Some("Infinity"),
        MINUS_INFINITY => Some("-Infinity"),
        _ => None,
    };
    if let Some(special) = special {
        return Some(Value::String(special.to_owned()));
    }
    let digits = (0..usize::from(count)).map(|index| word(4 + index)).collect::<Option<Vec<u16>>>()?;
    let text = decimal(&digits, i32::from(weight), usize::from(scale));
    Some(number(if sign == NEGATIVE { format!("-{text}") } else { text }))
}

/// Formats a number. Digits have four decimals each; the weight is the number of digits before the point, less one.
fn decimal(digits: &[u16], weight: i32, scale: usize) -> String {
    let digit = |position: i32| {
        usize::try_from(position).ok().and_then(|index| digits.get(index)).copied().unwrap_or_default()
    };
    let before: String = (0..=weight).map(|position| format!("{:04}", digit(position))).collect();
    let before = before.trim_start_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    if scale == 0 {
        return before.to_owned();
    }
    let groups = i32::try_from(scale.div_ceil(4)).unwrap_or(i32::MAX);
    let after: String =
        (weight + 1..weight + 1 + groups).map(|position| format!("{:04}", digit(position))).collect();
    format!("{before}.{}", &after[..scale])
}

/// Returns a JSON number if 64 bits can represent it exactly, else the text.
fn number(text: String) -> Value {
    let exact = match text.contains('.') {
        false => {
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
        }
        true => {
            let plain = text.trim_end_matches('0').trim_end_matches('.');
            let double = text.parse::<f64>().ok().filter(|double| double.to_string() == plain);
            double.and_then(Number::from_f64)
        }
    };
    exact.map_or(Value::String(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_is_one_only_where_it_is_exact() {
        let check = |text: &str, expected: Value| assert_eq!(number(text.to_owned()), expected);
        check("0", json!(0));
        check("-12", json!(-12));
        check("18446744073709551615", json!(18_446_744_073_709_551_615_u64));
        check("18446744073709551616", json!("18446744073709551616"));
        check("10.50", json!(10.5));
        check("0.1", json!(0.1));
        check("1.00", json!(1.0));
        check("0.1000000000000000055511151231257827", json!("0.1000000000000000055511151231257827"));
        check("12345678901234567890.5", json!("12345678901234567890.5"));
    }
}
