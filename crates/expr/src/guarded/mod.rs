//! Prints a parsed expression or text with bounded operators: operators that could create large values are replaced
//! by filters of `operators`, and unsupported syntax is refused. minijinja then compiles the printed text.
//!
//! The output is source text and not instructions, because minijinja keeps compiled code only together with its
//! source, and instructions that borrow from our own text would need `unsafe` or a leak.

mod each;
mod expr;
mod level;
mod text;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{Expr, Stmt};

/// Reason and position of unsupported syntax.
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) span: Span,
}

type Printed = Result<(), Refused>;

/// Printer of one program.
#[derive(Default)]
struct Printer {
    text: String,
    /// Number of expressions for each item that enclose this one, see `each`.
    enclosing: usize,
}

pub(crate) fn expression(expr: &Expr) -> Result<String, Refused> {
    let mut printer = Printer::default();
    printer.expr(expr, level::IF)?;
    Ok(printer.text)
}

pub(crate) fn text(statements: &[Stmt]) -> Result<String, Refused> {
    let mut printer = Printer::default();
    printer.body(statements)?;
    Ok(printer.text)
}

impl Printer {
    /// Appends text. It returns a `Result` so that calls can be chained with others.
    fn put(&mut self, text: &str) -> Printed {
        self.text.push_str(text);
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
