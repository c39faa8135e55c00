//! Templates of a pipeline, rendered field by field so that an error can name its place.

use super::large_values::RenderError;
use super::scope::View;
use crate::failure;
use serde_json::{Map, Value};
use windlass_expr::{Expr, Template};

type Fields = Map<String, Value>;

/// Renders fields. `place` is the part of the pipeline that has them.
pub(super) fn fields(view: &View<'_>, fields: &Fields, place: &str) -> Result<Fields, RenderError> {
    fields.iter().map(|(key, value)| Ok((key.clone(), field(view, key, value, place)?))).collect()
}

pub(super) fn field(view: &View<'_>, key: &str, value: &Value, place: &str) -> Result<Value, RenderError> {
    let named =
        |error: &dyn std::fmt::Display| failure::expression(&format!("`{key}` of {place}"), value, error);
    let template = Template::compile(value).map_err(|error| named(&error))?;
    view.large_values.settled(template.render(view).map_err(|error| named(&error)))
}

pub(super) fn truth(view: &View<'_>, condition: &str, place: &str) -> Result<bool, RenderError> {
    let source = Value::from(condition);
    let named =
        |error: &dyn std::fmt::Display| failure::expression(&format!("a rule of {place}"), &source, error);
    let condition = Expr::compile(condition).map_err(|error| named(&error))?;
    view.large_values.settled(condition.truthy(view).map_err(|error| named(&error)))
}

/// Merges `over` over `under`, key by key; a value that is not an object counts as empty.
pub(super) fn laid(under: Option<&Value>, over: Fields) -> Value {
    let mut laid = under.and_then(Value::as_object).cloned().unwrap_or_default();
    laid.extend(over);
    Value::Object(laid)
}
