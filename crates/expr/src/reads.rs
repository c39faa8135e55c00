//! Names that an expression reads, found in its syntax tree. minijinja's own search misses slices, filter blocks and
//! `set x = x`, and takes a method's name for a key.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{CallArg, Expr, Stmt};

use crate::each::EACH;
use crate::time::NOW;

/// A name that an expression reads: a root, and the first key below it if the text determines it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    pub root: String,
    /// `None` for the whole root: a bare use, or access by a computed key as in `ctx[name]`.
    pub key: Option<String>,
}

/// Sorts reads and removes duplicates; a read of a whole root includes its keys.
pub(crate) fn normalise(reads: impl IntoIterator<Item = Read>) -> Vec<Read> {
    let all: BTreeSet<Read> = reads.into_iter().collect();
    let whole: BTreeSet<String> = all.iter().filter(|r| r.key.is_none()).map(|r| r.root.clone()).collect();
    all.into_iter().filter(|r| r.key.is_none() || !whole.contains(&r.root)).collect()
}

pub(crate) fn of_expression(expr: &Expr) -> Vec<Read> {
    let mut search = ReadSearch::default();
    search.expr(expr);
    normalise(search.reads)
}

pub(crate) fn of_text(statements: &[Stmt]) -> Vec<Read> {
    let mut search = ReadSearch::default();
    search.body(statements);
    normalise(search.reads)
}

/// Search over a syntax tree. Names are bound in the order of the text, and a block's names end with it. A name that
/// may be unbound, as after an `if`, counts as read, because a superfluous read is harmless.
#[derive(Default)]
struct ReadSearch {
    reads: Vec<Read>,
    bound: Vec<String>,
}

impl ReadSearch {
    fn read(&mut self, root: &str, key: Option<&str>) {
        if !self.bound.iter().any(|name| name == root) {
            self.reads.push(Read { root: root.to_owned(), key: key.map(str::to_owned) });
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Var(var) => self.read(var.id, None),
            Expr::Const(_) => {}
            Expr::GetAttr(attr) => match &attr.expr {
                Expr::Var(var) => self.read(var.id, Some(attr.name)),
                other => self.expr(other),
            },
            Expr::GetItem(item) => match (&item.expr, &item.subscript_expr) {
                (Expr::Var(var), Expr::Const(key)) => self.read(var.id, key.value.as_str()),
                (value, key) => self.exprs([value, key]),
            },
            Expr::Call(call) => {
                match &call.expr {
                    Expr::Var(function) if function.id == "now" => self.read(NOW, None),
                    Expr::Var(_) => {}
                    Expr::GetAttr(method) => self.expr(&method.expr),
                    other => self.expr(other),
                }
                self.args(&call.args);
            }
            Expr::Filter(filter) => {
                self.exprs(&filter.expr);
                // The expression for each item reads the item and the arguments that follow it.
                let of_items = if filter.name == EACH { 2 } else { 0 };
                self.args(filter.args.get(of_items..).unwrap_or_default());
            }
            Expr::Test(test) => {
                self.expr(&test.expr);
                self.args(&test.args);
            }
            Expr::Slice(slice) => {
                self.expr(&slice.expr);
                self.exprs([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            Expr::UnaryOp(unary) => self.expr(&unary.expr),
            Expr::BinOp(binary) => self.exprs([&binary.left, &binary.right]),
            Expr::Compare(compare) => {
                self.expr(&compare.expr);
                self.exprs(compare.ops.iter().map(|next| &next.expr));
            }
            Expr::IfExpr(choice) => {
                self.exprs([&choice.test_expr, &choice.true_expr]);
                self.exprs(&choice.false_expr);
            }
            Expr::List(list) => self.exprs(&list.items),
            Expr::Tuple(tuple) => self.exprs(&tuple.items),
            Expr::Map(map) => self.exprs(map.keys.iter().chain(&map.values)),
        }
    }

    fn exprs<'a, 's: 'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr<'s>>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn args(&mut self, args: &[CallArg]) {
        for arg in args {
            match arg {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => self.expr(value),
            }
        }
    }

    fn body(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn block(&mut self, search: impl FnOnce(&mut ReadSearch)) {
        let outside = self.bound.len();
        search(self);
        self.bound.truncate(outside);
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::EmitExpr(emit) => self.expr(&emit.expr),
            Stmt::IfCond(choice) => {
                self.expr(&choice.expr);
                self.block(|search| search.body(&choice.true_body));
                self.block(|search| search.body(&choice.false_body));
            }
            Stmt::ForLoop(each) => {
                self.expr(&each.iter);
                self.block(|search| {
                    search.bind(&each.target);
                    search.exprs(&each.filter_expr);
                    search.bound.push("loop".to_owned());
                    search.body(&each.body);
                });
                self.block(|search| search.body(&each.else_body));
            }
            Stmt::WithBlock(with) => self.block(|search| {
                for (target, value) in &with.assignments {
                    search.expr(value);
                    search.bind(target);
                }
                search.body(&with.body);
            }),
            Stmt::Set(set) => {
                self.expr(&set.expr);
                if let Expr::GetAttr(attr) = &set.target {
                    self.expr(&attr.expr);
                }
                self.bind(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.block(|search| search.body(&set.body));
                self.exprs(&set.filter);
                self.bind(&set.target);
            }
            Stmt::FilterBlock(block) => {
                self.block(|search| search.body(&block.body));
                self.expr(&block.filter);
            }
            // `guarded` refuses all other statements except raw text, which reads nothing.
            _ => {}
        }
    }

    fn bind(&mut self, target: &Expr) {
        match target {
            Expr::Var(var) => self.bound.push(var.id.to_owned()),
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            _ => {}
        }
    }
}
