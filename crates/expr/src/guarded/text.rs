use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, Expr, Stmt};

use super::level::{FILTER, IF, OR};
use super::{Printed, Printer, refuse};
use crate::operators::COPIED;

impl Printer {
    pub(super) fn body(&mut self, statements: &[Stmt]) -> Printed {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt) -> Printed {
        match statement {
            // Raw text is printed as an expression, because only expressions are metered when they are written.
            Stmt::EmitRaw(raw) => {
                self.put("{{ ")?;
                self.quoted(raw.raw)?;
                self.put(" }}")
            }
            Stmt::EmitExpr(emit) => {
                self.put("{{ ")?;
                self.expr(&emit.expr, IF)?;
                self.put(" }}")
            }
            Stmt::IfCond(choice) => self.condition(choice),
            Stmt::ForLoop(each) if each.recursive => refuse(each.span(), "loops cannot be recursive"),
            Stmt::ForLoop(each) => self.each(each),
            Stmt::WithBlock(with) => self.with(with),
            Stmt::Set(set) => {
                self.put("{% set ")?;
                if let Expr::GetAttr(attr) = &set.target
                    && let Expr::Var(namespace) = &attr.expr
                {
                    self.put(&format!("{}.{} = ", namespace.id, attr.name))?;
                    self.expr(&set.expr, FILTER)?;
                    return self.put(&format!("|{COPIED} %}}"));
                }
                self.target(&set.target)?;
                self.put(" = ")?;
                self.expr(&set.expr, IF)?;
                self.put(" %}")
            }
            Stmt::SetBlock(set) => self.capture(set),
            Stmt::FilterBlock(block) => {
                self.put("{% filter ")?;
                self.expr(&block.filter, IF)?;
                self.put(" %}")?;
                self.body(&block.body)?;
                self.put("{% endfilter %}")
            }
            // The tokens were checked, so this matches only statements that minijinja adds in later versions.
            _ => refuse(Span::default(), "this statement is not supported"),
        }
    }

    fn condition(&mut self, choice: &ast::IfCond) -> Printed {
        self.put("{% if ")?;
        self.expr(&choice.expr, OR)?;
        self.put(" %}")?;
        self.body(&choice.true_body)?;
        self.put("{% else %}")?;
        self.body(&choice.false_body)?;
        self.put("{% endif %}")
    }

    fn each(&mut self, each: &ast::ForLoop) -> Printed {
        self.put("{% for ")?;
        self.target(&each.target)?;
        self.put(" in ")?;
        self.expr(&each.iter, OR)?;
        if let Some(condition) = &each.filter_expr {
            self.put(" if ")?;
            self.expr(condition, IF)?;
        }
        self.put(" %}")?;
        self.body(&each.body)?;
        self.put("{% else %}")?;
        self.body(&each.else_body)?;
        self.put("{% endfor %}")
    }

    fn with(&mut self, with: &ast::WithBlock) -> Printed {
        self.put("{% with ")?;
        for (index, (target, value)) in with.assignments.iter().enumerate() {
            self.put(if index == 0 { "(" } else { ", (" })?;
            self.target(target)?;
            self.put(") = ")?;
            self.expr(value, IF)?;
        }
        self.put(" %}")?;
        self.body(&with.body)?;
        self.put("{% endwith %}")
    }

    fn capture(&mut self, set: &ast::SetBlock) -> Printed {
        self.put("{% set ")?;
        self.target(&set.target)?;
        if let Some(filter) = &set.filter {
            self.put(" | ")?;
            self.expr(filter, IF)?;
        }
        self.put(" %}")?;
        self.body(&set.body)?;
        self.put("{% endset %}")
    }

    fn target(&mut self, target: &Expr) -> Printed {
        match target {
            Expr::Var(var) => self.put(var.id),
            Expr::List(list) => {
                self.put("(")?;
                for item in &list.items {
                    self.target(item)?;
                    self.put(", ")?;
                }
                self.put(")")
            }
            other => refuse(other.span(), "only a plain name can be set"),
        }
    }
}
