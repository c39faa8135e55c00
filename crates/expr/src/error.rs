use crate::limits::{BYTES_MAX, FUEL_MAX};

/// Error in the source of an expression or template.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct CompileError {
    pub message: String,
    /// Line in the source text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// JSON pointer to the string inside a template's tree; empty for an expression.
    pub path: String,
    pub source_text: String,
}

/// Error of an expression that compiled but has no value in this scope.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// The evaluation took more instructions, comparisons or searches than allowed.
    #[error("the expression takes too long (limit: {FUEL_MAX} instructions): use smaller lists, or a step")]
    Fuel,
    /// Intermediate values or the result have more bytes than allowed.
    #[error("the expression makes too much data (limit: {BYTES_MAX} bytes): make it in a step instead")]
    TooLarge,
    /// Any other error: a wrong type, or a result that JSON cannot represent.
    #[error("{0}")]
    Failed(String),
}
