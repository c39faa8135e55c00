use crate::limits::{BYTES_MAX, FUEL_MAX};

/// Text that is no expression or template.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct CompileError {
    pub message: String,
    /// 1-based, in the source text.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    /// JSON pointer to the string inside a template's tree; empty for an expression.
    pub path: String,
    pub source_text: String,
}

/// An expression that compiled but has no value here.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// More instructions, or more values compared and searched, than one evaluation may take.
    #[error("the expression takes too long (limit: {FUEL_MAX} instructions): use smaller lists, or a step")]
    Fuel,
    /// More bytes in intermediate values, or in the result, than one evaluation may make.
    #[error("the expression makes too much data (limit: {BYTES_MAX} bytes): make it in a step instead")]
    TooLarge,
    /// Anything else: a wrong type, or a result that JSON cannot hold.
    #[error("{0}")]
    Failed(String),
}
