use minijinja::Value as Jinja;
use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};
use minijinja::value::ValueKind;

use super::level::{
    COMPARE, FILTER, IF, Level, NOT, OR, POSTFIX, SUM, is_constant, is_scalar, level, operator,
};
use super::{Printed, Printer, refuse};
use crate::builtins::builtins;
use crate::each::EACH;
use crate::operators::{ITEM, MADE, NEEDLE, SLICE, WEIGHED};
use crate::time::{INSTANT, NOW};

/// Keywords that minijinja's parser accepts as names but that would be parsed differently when printed.
const KEYWORDS: [&str; 7] = ["and", "else", "if", "in", "is", "not", "or"];

impl Printer {
    pub(super) fn expr(&mut self, expr: &Expr, at_least: Level) -> Printed {
        if level(expr) >= at_least {
            return self.unparenthesized(expr);
        }
        self.put("(")?;
        self.unparenthesized(expr)?;
        self.put(")")
    }

    /// Prints an expression without parentheses. It only dispatches, because each level of nesting has a frame of it
    /// on the stack.
    fn unparenthesized(&mut self, expr: &Expr) -> Printed {
        match expr {
            Expr::Var(var) if KEYWORDS.contains(&var.id) => {
                refuse(expr.span(), format!("`{}` is not a name", var.id))
            }
            Expr::Var(var) => self.put(var.id),
            Expr::Const(constant) => self.constant(&constant.value, expr.span()),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(unary) => self.unary(unary),
            Expr::BinOp(binary) => self.binary(binary),
            Expr::Compare(compare) => self.compare(compare),
            Expr::IfExpr(choice) => self.if_else(choice),
            Expr::Filter(filter) => self.filter(filter, expr.span()),
            Expr::Test(test) => self.test(test, expr.span()),
            Expr::GetAttr(attr) => self.attribute(&attr.expr, attr.name),
            Expr::GetItem(item) => self.item(item),
            Expr::Call(call) => self.call(call, expr.span()),
            Expr::List(list) => self.items("[", &list.items, "]", is_constant(expr)),
            Expr::Tuple(tuple) => {
                let close = if tuple.items.len() == 1 { ",)" } else { ")" };
                self.items("(", &tuple.items, close, is_constant(expr))
            }
            Expr::Map(map) => self.map(map, is_constant(expr)),
        }
    }

    fn slice(&mut self, slice: &ast::Slice) -> Printed {
        self.expr(&slice.expr, FILTER)?;
        self.open_filter(SLICE)?;
        for (index, bound) in [&slice.start, &slice.stop, &slice.step].into_iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " })?;
            match bound {
                Some(bound) => self.expr(bound, IF)?,
                None => self.put("none")?,
            }
        }
        self.put(")")
    }

    fn unary(&mut self, unary: &ast::UnaryOp) -> Printed {
        match unary.op {
            UnaryOpKind::Not => {
                self.put("not ")?;
                self.expr(&unary.expr, NOT)
            }
            UnaryOpKind::Neg => {
                let is_number = matches!(&unary.expr, Expr::Const(number) if number.value.is_number());
                self.put("-")?;
                self.expr(&unary.expr, if is_number { FILTER } else { POSTFIX })
            }
        }
    }

    /// Prints a comparison. Any operand of a chain may be searched for in the next one.
    fn compare(&mut self, compare: &ast::Compare) -> Printed {
        self.charge_with(&compare.expr, NEEDLE)?;
        for next in &compare.ops {
            self.put(match next.op {
                CompareOpKind::Eq => " == ",
                CompareOpKind::Ne => " != ",
                CompareOpKind::Lt => " < ",
                CompareOpKind::Lte => " <= ",
                CompareOpKind::Gt => " > ",
                CompareOpKind::Gte => " >= ",
                CompareOpKind::In => " in ",
                CompareOpKind::NotIn => " not in ",
            })?;
            self.charge_with(&next.expr, NEEDLE)?;
        }
        Ok(())
    }

    fn if_else(&mut self, choice: &ast::IfExpr) -> Printed {
        self.expr(&choice.true_expr, OR)?;
        self.put(" if ")?;
        self.expr(&choice.test_expr, OR)?;
        if let Some(otherwise) = &choice.false_expr {
            self.put(" else ")?;
            self.expr(otherwise, IF)?;
        }
        Ok(())
    }

    fn test(&mut self, test: &ast::Test, span: Span) -> Printed {
        if !builtins().has_test(test.name) {
            return refuse(span, format!("test `{}` is unknown", test.name));
        }
        self.expr(&test.expr, FILTER)?;
        self.put(" is ")?;
        self.put(test.name)?;
        self.args(&test.args)
    }

    fn attribute(&mut self, value: &Expr, name: &str) -> Printed {
        self.expr(value, POSTFIX)?;
        self.put(".")?;
        self.put(name)
    }

    fn item(&mut self, item: &ast::GetItem) -> Printed {
        if is_scalar(&item.subscript_expr) {
            self.expr(&item.expr, POSTFIX)?;
            self.put("[")?;
            self.expr(&item.subscript_expr, IF)?;
            return self.put("]");
        }
        self.expr(&item.expr, FILTER)?;
        self.open_filter(ITEM)?;
        self.expr(&item.subscript_expr, IF)?;
        self.put(")")
    }

    /// Prints a list or tuple; one that the source text does not bound is checked when it is created.
    fn items(&mut self, open: &str, items: &[Expr], close: &str, is_constant: bool) -> Printed {
        self.put(open)?;
        for (index, item) in items.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " })?;
            self.expr(item, IF)?;
        }
        self.put(close)?;
        self.check_created(is_constant)
    }

    fn map(&mut self, map: &ast::Map, is_constant: bool) -> Printed {
        self.put("{")?;
        for (key, value) in map.keys.iter().zip(&map.values) {
            self.charge_walk(key)?;
            self.put(": ")?;
            self.expr(value, IF)?;
            self.put(", ")?;
        }
        self.put("}")?;
        self.check_created(is_constant)
    }

    fn check_created(&mut self, is_constant: bool) -> Printed {
        if is_constant {
            return Ok(());
        }
        self.put("|")?;
        self.put(MADE)
    }

    /// Opens the filter that replaces an operator.
    pub(super) fn open_filter(&mut self, filter: &str) -> Printed {
        self.put("|")?;
        self.put(filter)?;
        self.put("(")
    }

    /// Prints an operand that is visited as a whole, which is charged unless the source text bounds it.
    fn charge_walk(&mut self, expr: &Expr) -> Printed {
        self.charge_with(expr, WEIGHED)
    }

    fn charge_with(&mut self, expr: &Expr, filter: &str) -> Printed {
        if is_constant(expr) {
            return self.expr(expr, SUM);
        }
        self.expr(expr, FILTER)?;
        self.put("|")?;
        self.put(filter)
    }

    fn binary(&mut self, binary: &ast::BinOp) -> Printed {
        let (symbol, level) = operator(binary.op);
        let (left, right) = (&binary.left, &binary.right);
        if matches!(binary.op, BinOpKind::Add | BinOpKind::Mul | BinOpKind::Concat) {
            self.expr(left, FILTER)?;
            self.open_filter(symbol)?;
            self.expr(right, IF)?;
            return self.put(")");
        }
        if matches!(binary.op, BinOpKind::In) {
            self.charge_with(left, NEEDLE)?;
            self.put(" in ")?;
            return self.charge_walk(right);
        }
        // The comparison with a literal is one step for every type of the other operand.
        let is_walked = level == COMPARE && !is_scalar(left) && !is_scalar(right);
        let loose = if level == COMPARE { SUM } else { level };
        if is_walked { self.charge_walk(left) } else { self.expr(left, loose) }?;
        self.put(" ")?;
        self.put(symbol)?;
        self.put(" ")?;
        if is_walked { self.charge_walk(right) } else { self.expr(right, level + 1) }
    }

    fn filter(&mut self, filter: &ast::Filter, span: Span) -> Printed {
        if filter.name == EACH {
            return self.strict_each(filter, span);
        }
        if !builtins().has_filter(filter.name) {
            return refuse(span, format!("filter `{}` is unknown", filter.name));
        }
        if let Some(expr) = &filter.expr {
            self.expr(expr, FILTER)?;
            self.put("|")?;
        }
        self.put(filter.name)?;
        self.args(&filter.args)
    }

    fn call(&mut self, call: &ast::Call, span: Span) -> Printed {
        match &call.expr {
            Expr::Var(function) if function.id == "now" && call.args.is_empty() => {
                return self.put(&format!("({NOW}|{INSTANT})"));
            }
            Expr::Var(function) if function.id == "now" => {
                return refuse(
                    span,
                    "`now()` takes no arguments: format it with `now() | strftime('%Y-%m-%d')`",
                );
            }
            Expr::Var(function) if builtins().has_function(function.id) => self.put(function.id)?,
            Expr::Var(function) => return refuse(span, format!("function `{}` is unknown", function.id)),
            Expr::GetAttr(method) if method.name == "cycle" && call.args.is_empty() => {
                return refuse(span, "`cycle` needs at least one argument"); // minijinja would panic
            }
            Expr::GetAttr(method) => self.attribute(&method.expr, method.name)?,
            _ => return refuse(span, "only functions and methods can be called"),
        }
        self.args(&call.args)
    }

    fn args(&mut self, args: &[CallArg]) -> Printed {
        self.put("(")?;
        for (index, arg) in args.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " })?;
            let value = match arg {
                CallArg::Pos(value) => value,
                CallArg::Kwarg(name, value) => {
                    self.put(name)?;
                    self.put("=")?;
                    value
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    return refuse(
                        value.span(),
                        "arguments cannot be unpacked with `*` or `**`: name each one",
                    );
                }
            };
            self.expr(value, IF)?;
        }
        self.put(")")
    }

    fn constant(&mut self, value: &Jinja, span: Span) -> Printed {
        match value.kind() {
            ValueKind::String => self.quoted(value.as_str().unwrap_or_default()),
            ValueKind::Bool => self.put(if value.is_true() { "true" } else { "false" }),
            ValueKind::None => self.put("none"),
            ValueKind::Number if value.is_integer() => self.put(&value.to_string()),
            ValueKind::Number => match f64::try_from(value.clone()) {
                Ok(number) if number.is_finite() => self.put(&format!("{number:?}")),
                _ => refuse(span, "the number is too large"),
            },
            kind => refuse(span, format!("a {kind} cannot be written here")),
        }
    }
}
