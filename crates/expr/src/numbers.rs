//! Conversion of text to numbers. White space around a number is ignored, because what a program prints ends with a line
//! break.

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, State, Value as Jinja, filters};

use crate::limits::failed;

pub(crate) fn int(
    state: &State<'_, '_>,
    value: &Jinja,
    default: Option<Jinja>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    filters::int(state, &trimmed(value), default, base, options)
        .map_err(|error| described("int", value, error))
}

pub(crate) fn float(
    state: &State<'_, '_>,
    value: &Jinja,
    default: Option<Jinja>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    filters::float(state, &trimmed(value), default, options).map_err(|error| described("float", value, error))
}

fn trimmed(value: &Jinja) -> Jinja {
    match value.as_str() {
        Some(text) if text.trim() != text => Jinja::from(text.trim()),
        _ => value.clone(),
    }
}

/// Describes a text that is no number without showing it, because it may contain a secret.
fn described(filter: &str, value: &Jinja, error: Error) -> Error {
    match value.as_str() {
        Some("") => failed(format!("`{filter}` needs a number, and the text is empty")),
        Some(_) if error.kind() == ErrorKind::InvalidOperation => {
            failed(format!("`{filter}` needs a number, and the text is not one"))
        }
        _ => error,
    }
}
