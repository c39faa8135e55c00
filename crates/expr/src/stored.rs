//! Compiled expressions are stored as their source and compiled again when they are read. A translated one is stored with the
//! text of its author.

use crate::{Expr, Template, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredExpr<'a> {
    Source(Cow<'a, str>),
    Translation { source: Cow<'a, str>, written: Cow<'a, str> },
}

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let source = Cow::Borrowed(self.source());
        let stored = match self.written() == source {
            true => StoredExpr::Source(source),
            false => StoredExpr::Translation { source, written: Cow::Borrowed(self.written()) },
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let compiled = match StoredExpr::deserialize(deserializer)? {
            StoredExpr::Source(source) => Expr::compile(&source),
            StoredExpr::Translation { source, written } => Expr::compile_translation(&source, &written),
        };
        compiled.map_err(D::Error::custom)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Template::compile(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
