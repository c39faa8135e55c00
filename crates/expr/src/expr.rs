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
    names: Names,
    program: Program,
}

impl Expr {
    pub fn compile(source: &str) -> Result<Expr, CompileError> {
        let program = Program::guard(source)?;
        let names = Names::new(&program.reads);
        Ok(Expr(Arc::new(Compiled { source: source.to_owned(), names, program })))
    }

    pub fn source(&self) -> &str {
        &self.0.source
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
