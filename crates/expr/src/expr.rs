use std::fmt;
use std::sync::Arc;

use crate::convert::Names;
use crate::limits::with_meter;
use crate::program::Program;
use crate::{CompileError, EvalError, Read, Scope, Value, is_true};

/// One compiled expression: a guard or a condition. Text without tags is an expression, text with tags a template.
#[derive(Clone)]
pub struct Expr(Arc<Compiled>);

struct Compiled {
    source: String,
    /// Text of the author, if the source is a translation of it.
    written: Option<String>,
    names: Names,
    program: Program,
}

impl Expr {
    pub fn compile(source: &str) -> Result<Expr, CompileError> {
        Expr::compile_with(source, None)
    }

    /// Compiles the translation of a text in another language. Messages and drawings show the text.
    pub fn compile_translation(source: &str, written: &str) -> Result<Expr, CompileError> {
        Expr::compile_with(source, Some(written.to_owned()))
    }

    fn compile_with(source: &str, written: Option<String>) -> Result<Expr, CompileError> {
        let program = Program::guard(source)?;
        let names = Names::new(&program.reads);
        Ok(Expr(Arc::new(Compiled { source: source.to_owned(), written, names, program })))
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the expression as its author wrote it.
    pub fn written(&self) -> &str {
        self.0.written.as_deref().unwrap_or(&self.0.source)
    }

    /// Returns the names that the expression reads, sorted and without duplicates; a read of a whole root includes
    /// its keys.
    pub fn reads(&self) -> &[Read] {
        &self.0.program.reads
    }

    /// Evaluates the expression; undefined becomes null.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        let (inputs, bytes) = self.0.names.inputs(scope)?;
        with_meter(bytes, || self.0.program.run(inputs))
    }

    pub fn truthy(&self, scope: &dyn Scope) -> Result<bool, EvalError> {
        self.eval(scope).map(|value| is_true(&value))
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.0.source).finish()
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.0.source == other.0.source
    }
}
