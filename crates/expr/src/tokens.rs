//! Checks on tokens, made before parsing because the parser is recursive and counts nothing.

use minijinja::machinery::{Token, tokenize};

use crate::builtins::syntax;
use crate::limits::NESTING_MAX;

/// Statements that are supported. Macros, includes and blocks are not: nothing recurses, and a text depends on
/// nothing else.
const STATEMENTS: [&str; 12] = [
    "elif",
    "else",
    "endfilter",
    "endfor",
    "endif",
    "endset",
    "endwith",
    "filter",
    "for",
    "if",
    "set",
    "with",
];

/// Stack cost relative to an operator, which takes about 2 KiB in an unoptimised build.
const BRACKET: usize = 10;
const BLOCK: usize = 6;

/// Error for `${#`: a comment would swallow the rest of the shell text up to a later `#}`.
const SHELL_LENGTH: &str =
    "`${#` begins a comment here: write `{% raw %}${#name}{% endraw %}` for the shell's length";

/// Checks a text. The error is a message and a position in the text.
pub(crate) fn check(source: &str, is_expression: bool) -> Result<(), (String, usize)> {
    let mut nesting = Nesting { blocks: Vec::new(), runs: vec![0] };
    let mut tag = Tag::Inside;
    // The search ends at an invalid token, where the parser also fails.
    for (token, span) in tokenize(source, is_expression, syntax()).map_while(Result::ok) {
        if let (Tag::Opens, Token::Ident(name)) = (tag, &token)
            && !STATEMENTS.contains(name)
        {
            let message = format!("statement `{name}` is not supported; use if, for, set, with or filter");
            return Err((message, span.start_offset as usize));
        }
        if let Token::TemplateData(text) = &token
            && text.ends_with('$')
            && source.get(span.end_offset as usize..).is_some_and(|rest| rest.starts_with("{#"))
        {
            return Err((SHELL_LENGTH.to_owned(), span.end_offset as usize - 1));
        }
        tag = nesting.follow_token(tag, &token);
        if nesting.depth() > NESTING_MAX {
            let message = "the expression is nested too deep or has too many operators; assign parts of it to names first";
            return Err((message.to_owned(), span.start_offset as usize));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Tag {
    /// The next token names the statement.
    Opens,
    /// A `set` statement; whether it opens a block is known only at its end.
    Sets,
    Inside,
}

/// Upper bound of the parser's depth at a token, in operators.
struct Nesting {
    /// Two entries for each open block: the block itself and its `elif`.
    blocks: Vec<usize>,
    /// Number of operators since the last comma, for each open bracket and outside of all.
    runs: Vec<usize>,
}

impl Nesting {
    fn depth(&self) -> usize {
        self.blocks.iter().chain(&self.runs).sum()
    }

    fn follow_token(&mut self, tag: Tag, token: &Token) -> Tag {
        match (tag, token) {
            (_, Token::VariableStart | Token::BlockEnd) => {
                self.runs = vec![0];
                return Tag::Inside;
            }
            (_, Token::BlockStart) => {
                self.runs = vec![0];
                return Tag::Opens;
            }
            (Tag::Opens, Token::Ident(name)) => return self.open_statement(name),
            (Tag::Sets, Token::Assign) if self.runs.len() == 1 => {
                self.blocks.pop();
                return Tag::Inside;
            }
            (_, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) => {
                self.add_operators(BRACKET);
                self.runs.push(0);
            }
            (_, Token::ParenClose | Token::BracketClose | Token::BraceClose) if self.runs.len() > 1 => {
                self.runs.pop();
            }
            (_, Token::Comma | Token::Colon) => {
                self.runs.pop();
                self.runs.push(0);
            }
            // Their operand is printed in parentheses.
            (_, Token::Minus | Token::Ident("if")) => self.add_operators(BRACKET),
            (_, Token::Ident("and" | "else" | "in" | "is" | "not" | "or")) => self.add_operators(1),
            (_, Token::Ident(_) | Token::Str(_) | Token::String(_) | Token::TemplateData(_)) => {}
            (_, Token::Int(_) | Token::Int128(_) | Token::Float(_)) => {}
            _ => self.add_operators(1),
        }
        tag
    }

    fn add_operators(&mut self, operators: usize) {
        if let Some(run) = self.runs.last_mut() {
            *run += operators;
        }
    }

    fn open_statement(&mut self, name: &str) -> Tag {
        match name {
            "elif" => self.blocks.last_mut().map_or((), |block| *block += BLOCK),
            "filter" | "for" | "if" | "set" | "with" => self.blocks.push(BLOCK),
            "else" => {}
            _ => drop(self.blocks.pop()),
        }
        if name == "set" { Tag::Sets } else { Tag::Inside }
    }
}
