//! Conversion of the columns of a row to JSON, from their binary form.

use super::errors::{PostgresError, invalid};
use super::numeric::numeric;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Map, Number, Value, json};
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Kind, Type};

/// Seconds of the year 2000, from which the server counts.
const EPOCH_US: i64 = 946_684_800_000_000;

pub(super) fn row(row: &Row) -> Result<Value, PostgresError> {
    let mut fields = Map::new();
    for (index, column) in row.columns().iter().enumerate() {
        let Raw(raw) = row.try_get(index)?;
        let value = match raw {
            None => Some(Value::Null),
            Some(raw) => json(column.type_(), raw),
        };
        let Some(value) = value else {
            let (name, ty) = (column.name(), column.type_().name());
            return Err(invalid(format!(
                "the column `{name}` has a `{ty}` that has no form in JSON here; cast it to text: {name}::text"
            ))
            .into());
        };
        fields.insert(column.name().to_owned(), value);
    }
    Ok(Value::Object(fields))
}

struct Raw<'r>(Option<&'r [u8]>);

impl<'r> FromSql<'r> for Raw<'r> {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Raw<'r>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Raw<'r>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns None for an unknown type, and for a value that cannot be represented in JSON.
fn json(ty: &Type, raw: &[u8]) -> Option<Value> {
    match ty.kind() {
        Kind::Domain(inner) => return json(inner, raw),
        Kind::Enum(_) => return text(raw),
        Kind::Array(inner) => return array(inner, raw),
        _ => {}
    }
    match *ty {
        Type::BOOL => Some(json!(*raw.first()? != 0)),
        Type::INT2 => Some(json!(i16::from_be_bytes(raw.try_into().ok()?))),
        Type::INT4 => Some(json!(i32::from_be_bytes(raw.try_into().ok()?))),
        Type::INT8 => Some(json!(i64::from_be_bytes(raw.try_into().ok()?))),
        Type::OID => Some(json!(u32::from_be_bytes(raw.try_into().ok()?))),
        // Its own digits, not those of the nearest double.
        Type::FLOAT4 => float(&f32::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::FLOAT8 => float(&f64::from_be_bytes(raw.try_into().ok()?).to_string()),
        Type::NUMERIC => numeric(raw),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::XML | Type::CHAR => {
            text(raw)
        }
        Type::JSON => serde_json::from_slice(raw).ok(),
        Type::JSONB => serde_json::from_slice(raw.strip_prefix(&[1])?).ok(),
        Type::UUID => uuid(raw),
        Type::BYTEA => Some(json!(BASE64_STANDARD.encode(raw))),
        Type::DATE => days(raw),
        Type::TIME => clock(i64::from_be_bytes(raw.try_into().ok()?)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => timestamp(raw, *ty == Type::TIMESTAMPTZ),
        Type::INTERVAL => interval(raw),
        Type::INET | Type::CIDR => address(raw),
        Type::VOID => Some(Value::Null),
        _ if ty.name() == "citext" => text(raw),
        _ => None,
    }
}

fn text(raw: &[u8]) -> Option<Value> {
    std::str::from_utf8(raw).ok().map(Value::from)
}

/// Formats a float. Special values are not JSON numbers, so they are strings.
fn float(text: &str) -> Option<Value> {
    Some(match text {
        "NaN" => json!("NaN"),
        "inf" => json!("Infinity"),
        "-inf" => json!("-Infinity"),
        text => Value::Number(Number::from_f64(text.parse().ok()?)?),
    })
}

fn uuid(raw: &[u8]) -> Option<Value> {
    let number = u128::from_be_bytes(raw.try_into().ok()?);
    let hex = format!("{number:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(json!(parts.join("-")))
}

fn days(raw: &[u8]) -> Option<Value> {
    Some(match i32::from_be_bytes(raw.try_into().ok()?) {
        i32::MAX => json!("infinity"),
        i32::MIN => json!("-infinity"),
        days => json!(date(2000, 1, 1).checked_add(i64::from(days).days()).ok()?.to_string()),
    })
}

fn timestamp(raw: &[u8], has_zone: bool) -> Option<Value> {
    let micros = match i64::from_be_bytes(raw.try_into().ok()?) {
        i64::MAX => return Some(json!("infinity")),
        i64::MIN => return Some(json!("-infinity")),
        micros => micros,
    };
    let at = Timestamp::from_microsecond(micros.checked_add(EPOCH_US)?).ok()?;
    let text = if has_zone { at.to_string() } else { at.to_zoned(TimeZone::UTC).datetime().to_string() };
    Some(json!(text))
}

fn clock(micros: i64) -> Option<Value> {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(json!(if fraction == 0 {
        text
    } else {
        format!("{text}.{fraction:06}").trim_end_matches('0').to_owned()
    }))
}

/// Formats an interval by ISO 8601: months, days and seconds are not converted to each other.
fn interval(raw: &[u8]) -> Option<Value> {
    let micros = i64::from_be_bytes(*raw.first_chunk()?);
    let days = i32::from_be_bytes(*raw.get(8..)?.first_chunk()?);
    let months = i32::from_be_bytes(*raw.get(12..)?.first_chunk()?);
    let part = |number: i64, unit: &str| if number == 0 { String::new() } else { format!("{number}{unit}") };
    let dates =
        [part((months / 12).into(), "Y"), part((months % 12).into(), "M"), part(days.into(), "D")].concat();
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, fraction) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let time = match (seconds, fraction) {
        (0, 0) if !dates.is_empty() => String::new(),
        (seconds, 0) => format!("T{sign}{seconds}S"),
        (seconds, fraction) => {
            format!("T{sign}{}S", format!("{seconds}.{fraction:06}").trim_end_matches('0'))
        }
    };
    Some(json!(format!("P{dates}{time}")))
}

/// Parses family, bits, whether it is a network, length, address.
fn address(raw: &[u8]) -> Option<Value> {
    let [_, bits, is_cidr, _, address @ ..] = raw else { return None };
    let (text, whole) = match address.len() {
        4 => (Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).to_string(), 32),
        16 => (Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).to_string(), 128),
        _ => return None,
    };
    let shows_bits = *is_cidr != 0 || *bits != whole;
    Some(json!(if shows_bits { format!("{text}/{bits}") } else { text }))
}

/// Parses dimensions, flags and type, then length and lower bound of each dimension, then the elements one after the
/// other.
fn array(inner: &Type, raw: &[u8]) -> Option<Value> {
    let word = |at: usize| Some(i32::from_be_bytes(*raw.get(at..)?.first_chunk()?));
    let dimensions = usize::try_from(word(0)?).ok()?;
    if dimensions == 0 {
        return Some(json!([]));
    }
    let lengths = (0..dimensions).map(|index| usize::try_from(word(12 + index * 8)?).ok());
    let lengths: Vec<usize> = lengths.collect::<Option<_>>()?;
    let mut rest = raw.get(12 + dimensions * 8..)?;
    elements(inner, &lengths, &mut rest)
}

fn elements(inner: &Type, lengths: &[usize], rest: &mut &[u8]) -> Option<Value> {
    let Some((length, deeper)) = lengths.split_first() else { return element(inner, rest) };
    (0..*length).map(|_| elements(inner, deeper, rest)).collect::<Option<Vec<Value>>>().map(Value::Array)
}

fn element(inner: &Type, rest: &mut &[u8]) -> Option<Value> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        *rest = after;
        return Some(Value::Null);
    };
    let (raw, after) = after.split_at_checked(length)?;
    *rest = after;
    json(inner, raw)
}
