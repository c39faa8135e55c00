//! Validation with JSON Schemas from untrusted sources, within limits.
//!
//! A schema of three kilobytes can require 2^45 evaluations, so the work is counted before a schema or a value
//! reaches the validator: [`Schema::new`] rejects schemas that are too large or refer to themselves, and
//! [`Schema::validate`] counts the evaluations that a value needs and rejects the value beyond [`STEPS_MAX`].

mod graph;
mod limits;
mod read;
mod report;
mod steps;
mod weigh;

pub use limits::{BYTES_MAX, DEPTH_MAX, ERRORS_MAX, STEPS_MAX, SUBSCHEMAS_MAX};

use graph::Graph;
use jsonschema::{PatternOptions, Validator};
use limits::{PATTERN_BYTES_MAX, STACK_BYTES};
use serde_json::Value;
use std::fmt;

/// Reason why a schema cannot be used, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaProblem {
    /// JSON pointer into the schema.
    pub pointer: String,
    pub message: String,
}

impl SchemaProblem {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> SchemaProblem {
        SchemaProblem { pointer: pointer.into(), message: message.into() }
    }
}

/// Reason why a value does not match a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// JSON pointer into the value.
    pub pointer: String,
    pub message: String,
}

/// A schema with a bounded cost.
pub struct Schema {
    graph: Graph,
    validator: Validator,
}

impl Schema {
    pub fn new(schema: &Value) -> Result<Schema, SchemaProblem> {
        let graph = read::build_graph(schema)?;
        weigh::check_weight(&graph)?;
        Ok(Schema { validator: compile(schema)?, graph })
    }

    /// Returns at most [`ERRORS_MAX`] reasons why the value does not match. A value that would take more than
    /// [`STEPS_MAX`] steps is not validated, and that is the only reason.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<Misfit>> {
        steps::count_steps(&self.graph, value).map_err(|misfit| vec![misfit])?;
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(value).take(ERRORS_MAX);
        Err(errors.map(|error| report::to_misfit(&error)).collect())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("subschemas", &self.graph.nodes.len()).finish_non_exhaustive()
    }
}

/// Compiles a schema on a thread of its own: the compiler recurses along references, once per subschema, which takes
/// more stack than usual threads have.
fn compile(schema: &Value) -> Result<Validator, SchemaProblem> {
    let build = || {
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        options.build(schema).map_err(|error| report::to_problem(&error))
    };
    let compiled = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("windlass-schema".to_owned()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, build).map(|thread| thread.join())
    });
    match compiled {
        Ok(Ok(compiled)) => compiled,
        Ok(Err(_)) => Err(SchemaProblem::new("", "the validator cannot compile it; simplify the schema")),
        Err(error) => Err(SchemaProblem::new("", format!("no thread to compile it: {error}; try again"))),
    }
}

#[cfg(test)]
mod tests;
