//! Prints a parsed expression or text again, with the operators that could make too much replaced by filters of
//! `operators`, and refuses what does not exist here. minijinja then compiles that.
//!
//! Source text and not instructions, because minijinja keeps nothing but source text together with what it compiled from
//! it, and instructions that borrow from a text of ours would need `unsafe` or a leak.

mod expr;
mod level;
mod text;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{Expr, Stmt};

/// Why a text cannot be used, and where.
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) span: Span,
}

type Printed = Result<(), Refused>;

struct Printer(String);

pub(crate) fn expression(expr: &Expr) -> Result<String, Refused> {
    let mut printer = Printer(String::new());
    printer.expr(expr, level::IF)?;
    Ok(printer.0)
}

pub(crate) fn text(statements: &[Stmt]) -> Result<String, Refused> {
    let mut printer = Printer(String::new());
    printer.body(statements)?;
    Ok(printer.0)
}

impl Printer {
    /// A `Result` only to read well among its callers.
    fn put(&mut self, text: &str) -> Printed {
        self.0.push_str(text);
        Ok(())
    }

    fn quoted(&mut self, text: &str) -> Printed {
        self.put("\"")?;
        self.put(&text.replace('\\', "\\\\").replace('"', "\\\""))?;
        self.put("\"")
    }
}

fn refuse<T>(span: Span, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { message: message.into(), span })
}
