use minijinja::machinery::ast::{BinOpKind, Expr, UnaryOpKind};

use crate::operators::{ADD, CONCAT, MULTIPLY};

/// Precedence of an expression; an operand with a lower one than required is printed in parentheses.
pub(super) type Level = u8;
pub(super) const IF: Level = 0;
pub(super) const OR: Level = 1;
pub(super) const AND: Level = 2;
pub(super) const NOT: Level = 3;
pub(super) const COMPARE: Level = 4;
pub(super) const SUM: Level = 5;
pub(super) const PRODUCT: Level = 7;
pub(super) const POWER: Level = 8;
pub(super) const FILTER: Level = 9;
pub(super) const POSTFIX: Level = 10;

pub(super) fn level(expr: &Expr) -> Level {
    match expr {
        Expr::Var(_) | Expr::GetAttr(_) | Expr::Call(_) => POSTFIX,
        Expr::Const(constant) if constant.value.is_number() => FILTER,
        Expr::Const(_) => POSTFIX,
        Expr::GetItem(item) if is_scalar(&item.subscript_expr) => POSTFIX,
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) if is_constant(expr) => POSTFIX,
        Expr::GetItem(_) | Expr::Slice(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => FILTER,
        Expr::Filter(_) | Expr::Test(_) => FILTER,
        Expr::UnaryOp(unary) => match unary.op {
            UnaryOpKind::Not => NOT,
            UnaryOpKind::Neg => FILTER,
        },
        Expr::BinOp(binary) => operator(binary.op).1,
        Expr::Compare(_) => COMPARE,
        Expr::IfExpr(_) => IF,
    }
}

/// Returns the text and the precedence of an operator. Operators that are replaced by filters have the precedence of
/// filters.
pub(super) fn operator(op: BinOpKind) -> (&'static str, Level) {
    match op {
        BinOpKind::Eq => ("==", COMPARE),
        BinOpKind::Ne => ("!=", COMPARE),
        BinOpKind::Lt => ("<", COMPARE),
        BinOpKind::Lte => ("<=", COMPARE),
        BinOpKind::Gt => (">", COMPARE),
        BinOpKind::Gte => (">=", COMPARE),
        BinOpKind::In => ("in", COMPARE),
        BinOpKind::ScAnd => ("and", AND),
        BinOpKind::ScOr => ("or", OR),
        BinOpKind::Add => (ADD, FILTER),
        BinOpKind::Mul => (MULTIPLY, FILTER),
        BinOpKind::Concat => (CONCAT, FILTER),
        BinOpKind::Sub => ("-", SUM),
        BinOpKind::Div => ("/", PRODUCT),
        BinOpKind::FloorDiv => ("//", PRODUCT),
        BinOpKind::Rem => ("%", PRODUCT),
        BinOpKind::Pow => ("**", POWER),
    }
}

/// Returns whether the source text bounds the value.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) => true,
        Expr::List(list) => list.items.iter().all(is_scalar),
        Expr::Tuple(tuple) => tuple.items.iter().all(is_scalar),
        Expr::Map(map) => map.keys.iter().chain(&map.values).all(is_scalar),
        _ => false,
    }
}

/// Returns whether the expression is a literal, which is compared in one step.
pub(super) fn is_scalar(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) => true,
        Expr::UnaryOp(unary) => matches!((&unary.op, &unary.expr), (UnaryOpKind::Neg, Expr::Const(_))),
        _ => false,
    }
}
