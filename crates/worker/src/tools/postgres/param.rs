//! Conversion of a JSON value to a parameter. It is sent as text, which the server parses for each of its types.

use bytes::BytesMut;
use serde_json::Value;
use std::error::Error;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

#[derive(Debug)]
pub(super) struct Param<'v>(pub(super) &'v Value);

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = text(self.0, ty)? else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn text(value: &Value, ty: &Type) -> Result<Option<String>, String> {
    let ty = base(ty);
    if *ty == Type::JSON || *ty == Type::JSONB {
        return Ok(Some(value.to_string()).filter(|_| !value.is_null()));
    }
    match (value, ty.kind()) {
        (Value::Null, _) => Ok(None),
        (Value::String(text), _) => Ok(Some(text.clone())),
        (Value::Bool(_) | Value::Number(_), _) => Ok(Some(value.to_string())),
        (Value::Array(items), Kind::Array(inner)) => Ok(Some(array(items, inner)?)),
        (Value::Array(_) | Value::Object(_), _) if is_text(ty) => Ok(Some(value.to_string())),
        (Value::Array(_) | Value::Object(_), _) => {
            Err(format!("a list or a map cannot be a `{}`", ty.name()))
        }
    }
}

fn base(ty: &Type) -> &Type {
    match ty.kind() {
        Kind::Domain(inner) => base(inner),
        _ => ty,
    }
}

fn is_text(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR].contains(ty)
}

/// Formats `{1,2}`, with every string in quotes. Nested lists are its further dimensions.
fn array(items: &[Value], inner: &Type) -> Result<String, String> {
    let mut parts = Vec::new();
    for item in items {
        let part = match item {
            Value::Array(deeper) if *base(inner) != Type::JSON && *base(inner) != Type::JSONB => {
                array(deeper, inner)?
            }
            item => match text(item, inner)? {
                None => "NULL".to_owned(),
                Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            },
        };
        parts.push(part);
    }
    Ok(format!("{{{}}}", parts.join(",")))
}
