use minijinja::Value as Jinja;
use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{parse, parse_expr};
use std::sync::Arc;

use crate::builtins::syntax;
use crate::convert::to_json;
use crate::guarded::{self, Refused};
use crate::limits::{burn, charge_result, eval_error};
use crate::recent::{Code, Form, NAME, compile, get_compiled};
use crate::{CompileError, EvalError, Read, Value, reads, tokens};

/// A text that has been compiled. Its compiled code is cached while it is in use, see `recent`.
pub(crate) struct Program {
    pub(crate) reads: Vec<Read>,
    form: Form,
    /// Text with bounded operators.
    printed: Arc<str>,
}

/// Returns whether a string is a template.
#[must_use]
pub fn has_tags(source: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|opener| source.contains(opener))
}

impl Program {
    /// Compiles a guard. Text without tags is an expression. Text with tags only inside its string literals would be
    /// one too, but its author meant something else.
    pub(crate) fn guard(source: &str) -> Result<Program, CompileError> {
        if !has_tags(source) {
            return Program::expression(source);
        }
        if tokens::check(source, true).is_ok() && parse_expr(source).is_ok() {
            let message = "tags inside quotes are not evaluated: leave out the inner `{{ }}`";
            return Err(error_at(source, message, None));
        }
        Program::template(source)
    }

    fn expression(source: &str) -> Result<Program, CompileError> {
        check(source, true)?;
        let expr = parse_expr(source).map_err(|error| parse_error(source, &error))?;
        Program::of_expression(source, &expr)
    }

    /// Compiles a lone `{{ expression }}` or any other text.
    pub(crate) fn template(source: &str) -> Result<Program, CompileError> {
        check(source, false)?;
        let tree = parse(source, NAME, syntax()).map_err(|error| parse_error(source, &error))?;
        let Stmt::Template(tree) = &tree else { return Err(error_at(source, "not a template", None)) };
        match lone_expression(&tree.children) {
            Some(expr) => Program::of_expression(source, expr),
            None => Program::of_text(source, &tree.children),
        }
    }

    fn of_expression(source: &str, expr: &Expr) -> Result<Program, CompileError> {
        let printed = guarded::expression(expr).map_err(|refused| refused_error(source, &refused))?;
        Program::of_printed(source, Form::Expression, printed, reads::of_expression(expr))
    }

    fn of_text(source: &str, statements: &[Stmt]) -> Result<Program, CompileError> {
        let printed = guarded::text(statements).map_err(|refused| refused_error(source, &refused))?;
        Program::of_printed(source, Form::Text, printed, reads::of_text(statements))
    }

    fn of_printed(
        source: &str,
        form: Form,
        printed: String,
        reads: Vec<Read>,
    ) -> Result<Program, CompileError> {
        compile(form, &printed).map_err(|error| error_at(source, &error_message(&error), None))?;
        Ok(Program { reads, form, printed: printed.into() })
    }

    /// Runs the program; call it inside `with_meter`.
    pub(crate) fn run(&self, inputs: Jinja) -> Result<Value, EvalError> {
        match &*get_compiled(self.form, &self.printed)? {
            Code::Expression(code) => to_json(&code.eval(inputs).map_err(|error| eval_error(&error))?),
            Code::Text(env) => {
                let rendered = env.get_template(NAME).and_then(|template| template.render_captured(inputs));
                let rendered = rendered.map_err(|error| eval_error(&error))?;
                burn(rendered.state().fuel_levels().map_or(0, |(consumed, _)| consumed))?;
                charge_result(rendered.output().len())?;
                Ok(Value::String(rendered.into_output()))
            }
        }
    }
}

/// Returns the expression of a text that is nothing else, except for whitespace around it, as YAML blocks leave it.
fn lone_expression<'t, 's>(statements: &'t [Stmt<'s>]) -> Option<&'t Expr<'s>> {
    let is_space = |statement: &&Stmt| matches!(statement, Stmt::EmitRaw(raw) if raw.raw.trim().is_empty());
    let mut rest = statements.iter().filter(|statement| !is_space(statement));
    match (rest.next(), rest.next()) {
        (Some(Stmt::EmitExpr(emit)), None) => Some(&emit.expr),
        _ => None,
    }
}

fn check(source: &str, is_expression: bool) -> Result<(), CompileError> {
    tokens::check(source, is_expression).map_err(|(message, offset)| error_at(source, &message, Some(offset)))
}

fn refused_error(source: &str, refused: &Refused) -> CompileError {
    error_at(source, &refused.message, Some(refused.span.start_offset as usize))
}

fn parse_error(source: &str, error: &minijinja::Error) -> CompileError {
    error_at(source, &error_message(error), error.range().map(|range| range.start))
}

fn error_message(error: &minijinja::Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

fn error_at(source: &str, message: &str, offset: Option<usize>) -> CompileError {
    let before = source.get(..offset.unwrap_or(0)).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    CompileError {
        message: message.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        path: String::new(),
        source_text: source.to_owned(),
    }
}
