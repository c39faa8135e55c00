//! Expressions and templates of definitions, based on minijinja.
//!
//! The crate is pure: an expression reads the scope that it is given, and no clock, randomness or files.

mod builtins;
mod convert;
mod cost;
mod each;
mod encoded;
mod error;
mod expr;
mod exprlang;
mod guarded;
mod inputs;
mod limits;
mod literals;
mod names;
mod numbers;
mod operators;
mod pattern;
mod pieces;
mod program;
mod reads;
mod recent;
mod satisfying;
mod scope;
mod stored;
mod strict;
mod template;
mod texts;
mod time;
mod tokens;
mod truth;

pub use builtins::{filter_names, test_names};
pub use error::{CompileError, EvalError};
pub use expr::Expr;
pub use exprlang::{BoundName, Translation, ValueKind, literal, translate_condition};
pub use inputs::{circular_defaults, has_templates, known_at_start, overlay, with_defaults};
pub use limits::{BYTES_MAX, FUEL_MAX};
pub use names::{of_iteration, of_output};
pub use pattern::check_pattern;
pub use pieces::{Piece, pieces};
pub use program::has_tags;
pub use reads::Read;
pub use scope::Scope;
pub use serde_json::Value;

pub use template::Template;
pub use time::NOW;
pub use truth::is_true;

pub type Map = serde_json::Map<String, Value>;
