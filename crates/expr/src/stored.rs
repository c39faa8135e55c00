//! Compiled expressions are stored as their source and compiled again when they are read.

use crate::{Expr, Template, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Expr::compile(&String::deserialize(deserializer)?).map_err(D::Error::custom)
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
