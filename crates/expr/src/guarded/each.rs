use minijinja::machinery::Span;
use minijinja::machinery::ast::{CallArg, Expr, Filter};

use super::level::{FILTER, IF};
use super::{Printed, Printer, Refused, refuse};
use crate::each::{BURNED, EACH, EACH_PRINTED, ITEM, MODES, NESTING_MAX, PRINTED_BYTES_MAX};
use crate::reads;
use crate::recent::{Form, compile};
use crate::time::NOW;

/// Parts of `LIST|strict_each(MODE, EACH, name=value)`.
struct Parts<'a, 's> {
    mode: &'a str,
    each: &'a Expr<'s>,
    passed: Vec<(&'s str, &'a Expr<'s>)>,
}

impl Printer {
    /// Prints the filter with its expression as a text, which has been compiled as a program of its own.
    pub(super) fn strict_each(&mut self, filter: &Filter, span: Span) -> Printed {
        let (Some(list), Some(parts)) = (&filter.expr, parts(&filter.args)) else {
            let modes = MODES.map(|mode| format!("\"{mode}\"")).join(", ");
            let message = format!(
                "write `list|{EACH}(\"any\", {ITEM} > least, least=ctx.least)`; in place of \"any\" one of {modes}"
            );
            return refuse(span, message);
        };
        check_reads(&parts)?;
        let printed = self.print_program(parts.each)?;
        self.expr(list, FILTER)?;
        self.open_filter(EACH_PRINTED)?;
        self.quoted(parts.mode)?;
        self.put(", ")?;
        self.quoted(&printed)?;
        self.put(", {")?;
        for (name, value) in parts.passed {
            self.quoted(name)?;
            self.put(": ")?;
            self.expr(value, IF)?;
            self.put(", ")?;
        }
        self.put("})")
    }

    fn print_program(&self, each: &Expr) -> Result<String, Refused> {
        let mut printer = Printer { enclosing: self.enclosing + 1, ..Printer::default() };
        if printer.enclosing > NESTING_MAX {
            return refuse(each.span(), format!("`{EACH}` can be nested at most {NESTING_MAX} deep"));
        }
        printer.expr(each, FILTER)?;
        printer.put("|")?;
        printer.put(BURNED)?;
        if printer.text.len() > PRINTED_BYTES_MAX {
            let message = format!(
                "an expression for each item has at most {PRINTED_BYTES_MAX} bytes: pass long values by name"
            );
            return refuse(each.span(), message);
        }
        match compile(Form::Expression, &printer.text) {
            Ok(_) => Ok(printer.text),
            Err(error) => refuse(each.span(), error.detail().unwrap_or("it cannot be compiled")),
        }
    }
}

fn parts<'a, 's>(args: &'a [CallArg<'s>]) -> Option<Parts<'a, 's>> {
    let [CallArg::Pos(Expr::Const(mode)), CallArg::Pos(each), passed @ ..] = args else { return None };
    let mode = mode.value.as_str().filter(|mode| MODES.contains(mode))?;
    let passed = passed.iter().map(|arg| match arg {
        CallArg::Kwarg(name, value) => Some((*name, value)),
        CallArg::Pos(_) | CallArg::PosSplat(_) | CallArg::KwargSplat(_) => None,
    });
    Some(Parts { mode, each, passed: passed.collect::<Option<_>>()? })
}

/// Checks that the expression reads the item and what is passed by name only: a program of its own sees nothing else.
fn check_reads(parts: &Parts<'_, '_>) -> Printed {
    let is_known = |root: &str| root == ITEM || parts.passed.iter().any(|(name, _)| *name == root);
    match reads::of_expression(parts.each).iter().find(|read| !is_known(&read.root)) {
        None => Ok(()),
        Some(read) if read.root == NOW => refuse(
            parts.each.span(),
            "`now()` does not change from item to item: pass it by name, as in `at=now()`",
        ),
        Some(read) => {
            let message = format!(
                "the expression for each item reads `{0}`: pass it by name, as in `{0}={0}`",
                read.root
            );
            refuse(parts.each.span(), message)
        }
    }
}
