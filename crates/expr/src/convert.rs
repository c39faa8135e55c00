//! Conversion between JSON and the values of minijinja.

use std::sync::Arc;

use minijinja::Value as Jinja;
use minijinja::value::{Object, ValueKind};

use crate::limits::{DEPTH_MAX, RESULT_DEPTH_MAX, charge_result};
use crate::{EvalError, Map, Read, Scope, Value};

/// Cost of a JSON value in addition to its text.
const NODE_BYTES: usize = 16;

/// Names that an expression reads, in the order of `Inputs::values`.
pub(crate) struct Names(Arc<[Root]>);

#[derive(Debug)]
struct Root {
    name: String,
    /// `None` if the whole root is read.
    keys: Option<Arc<[String]>>,
}

/// Values of the names in one scope; the root context of an evaluation.
#[derive(Debug)]
struct Inputs {
    roots: Arc<[Root]>,
    values: Vec<Jinja>,
}

/// A root of which only some keys are read. It is never formatted or iterated, since that would read the whole root.
#[derive(Debug)]
struct Keyed {
    keys: Arc<[String]>,
    values: Vec<Jinja>,
}

impl Names {
    /// Groups reads by root. `reads` must be normalised, so that the keys of a root are adjacent.
    pub(crate) fn new(reads: &[Read]) -> Names {
        let roots = reads.chunk_by(|a, b| a.root == b.root).map(|reads| Root {
            name: reads[0].root.clone(),
            keys: reads.iter().map(|read| read.key.clone()).collect(),
        });
        Names(roots.collect())
    }

    /// Returns the values and their size in bytes.
    pub(crate) fn inputs(&self, scope: &dyn Scope) -> Result<(Jinja, usize), EvalError> {
        let mut bytes = 0;
        let mut get = |root: &str, key| match scope.get(root, key) {
            Some(value) => to_jinja(&value, 1, &mut bytes).ok_or_else(|| {
                let name = key.map_or(root.to_owned(), |key| format!("{root}.{key}"));
                EvalError::Failed(format!("`{name}` is nested more than {DEPTH_MAX} deep"))
            }),
            None => Ok(Jinja::UNDEFINED),
        };
        let mut values = Vec::with_capacity(self.0.len());
        for root in self.0.iter() {
            values.push(match &root.keys {
                None => get(&root.name, None)?,
                Some(keys) => {
                    let values =
                        keys.iter().map(|key| get(&root.name, Some(key))).collect::<Result<_, _>>()?;
                    Jinja::from_object(Keyed { keys: Arc::clone(keys), values })
                }
            });
        }
        Ok((Jinja::from_object(Inputs { roots: Arc::clone(&self.0), values }), bytes))
    }
}

impl Object for Inputs {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        let at = self.roots.iter().position(|root| root.name == key)?;
        Some(self.values[at].clone()).filter(|value| !value.is_undefined())
    }
}

impl Object for Keyed {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        let at = self.keys.iter().position(|known| known == key)?;
        Some(self.values[at].clone())
    }
}

/// Converts JSON, counting bytes as [`to_json`] does; returns `None` if the value is nested too deep.
pub(crate) fn to_jinja(value: &Value, depth: usize, bytes: &mut usize) -> Option<Jinja> {
    if depth > DEPTH_MAX {
        return None;
    }
    *bytes += NODE_BYTES;
    Some(match value {
        Value::Null => Jinja::from(()),
        Value::Bool(value) => Jinja::from(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => Jinja::from(value),
            (_, Some(value), _) => Jinja::from(value),
            (.., value) => Jinja::from(value),
        },
        Value::String(text) => {
            *bytes += text.len();
            Jinja::from(text)
        }
        Value::Array(items) => {
            items.iter().map(|item| to_jinja(item, depth + 1, bytes)).collect::<Option<Vec<_>>>()?.into()
        }
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| {
                *bytes += 2 * NODE_BYTES + key.len();
                Some((Jinja::from(key), to_jinja(value, depth + 1, bytes)?))
            };
            Jinja::from_pairs(fields.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
    })
}

/// Converts the result to JSON and charges its bytes as it grows.
pub(crate) fn to_json(value: &Jinja) -> Result<Value, EvalError> {
    convert_value(value, 1)
}

fn convert_value(value: &Jinja, depth: usize) -> Result<Value, EvalError> {
    charge_result(NODE_BYTES)?;
    if depth > RESULT_DEPTH_MAX + 1 {
        return Err(EvalError::Failed(format!("the result is nested more than {RESULT_DEPTH_MAX} deep")));
    }
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => convert_number(value)?,
        ValueKind::String => Value::String(convert_text(value)?),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| EvalError::Failed(error.to_string()))?;
            Value::Array(items.map(|item| convert_value(&item, depth + 1)).collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for (key, field) in
                value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten()
            {
                charge_result(NODE_BYTES)?;
                fields.insert(convert_key(&key)?, convert_value(&field, depth + 1)?);
            }
            Value::Object(fields)
        }
        kind => return Err(EvalError::Failed(format!("the result is a {kind}, which is not a JSON value"))),
    })
}

fn convert_text(value: &Jinja) -> Result<String, EvalError> {
    let text = value.as_str().unwrap_or_default();
    charge_result(text.len())?;
    Ok(text.to_owned())
}

/// Converts a key of an object; numbers and booleans become strings, as JSON requires.
fn convert_key(key: &Jinja) -> Result<String, EvalError> {
    match convert_value(key, RESULT_DEPTH_MAX)? {
        Value::String(text) => Ok(text),
        Value::Array(_) | Value::Object(_) => {
            Err(EvalError::Failed("a key of the result is a list or object".into()))
        }
        other => Ok(other.to_string()),
    }
}

fn convert_number(value: &Jinja) -> Result<Value, EvalError> {
    if value.is_integer() {
        if let Ok(number) = i64::try_from(value.clone()) {
            return Ok(Value::from(number));
        }
        return u64::try_from(value.clone())
            .map(Value::from)
            .map_err(|_| EvalError::Failed(format!("the result {value} does not fit in a 64-bit integer")));
    }
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    serde_json::Number::from_f64(number)
        .map(Value::Number)
        .ok_or_else(|| EvalError::Failed(format!("the result is {value}, which JSON cannot hold")))
}
