//! What is checked on the tokens, because the parser would recurse on them before it has counted anything.

use minijinja::machinery::{Token, tokenize};

use crate::builtins::syntax;
use crate::limits::NESTING_MAX;

/// No macros, includes or blocks: nothing recurses, and a text is all there is to know about it.
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

/// An unoptimised build takes about 2 KiB of stack for an operator, and these times as much for others.
const BRACKET: usize = 10;
const BLOCK: usize = 6;

/// A comment would swallow what a shell means by it, up to some later `#}` or for good.
const SHELL_LENGTH: &str =
    "`${#` begins a comment here: write `{% raw %}${#name}{% endraw %}` for the shell's length";

/// The error is a message and the place in the text.
pub(crate) fn check(source: &str, is_expression: bool) -> Result<(), (String, usize)> {
    let mut nesting = Nesting { blocks: Vec::new(), runs: vec![0] };
    let mut tag = Tag::Inside;
    // An error ends this search, and the parser at the same token.
    for (token, span) in tokenize(source, is_expression, syntax()).map_while(Result::ok) {
        if let (Tag::Opens, Token::Ident(name)) = (tag, &token)
            && !STATEMENTS.contains(name)
        {
            let message = format!("statement `{name}` does not exist here: use if, for, set, with or filter");
            return Err((message, span.start_offset as usize));
        }
        if let Token::TemplateData(text) = &token
            && text.ends_with('$')
            && source.get(span.end_offset as usize..).is_some_and(|rest| rest.starts_with("{#"))
        {
            return Err((SHELL_LENGTH.to_owned(), span.end_offset as usize - 1));
        }
        tag = nesting.follow(tag, &token);
        if nesting.depth() > NESTING_MAX {
            let message =
                "this is nested too deep, or too long a chain of operators: set parts of it to names first";
            return Err((message.to_owned(), span.start_offset as usize));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Tag {
    /// The next token names the statement.
    Opens,
    /// After `set`: whether it opens a block is not known before its end.
    Sets,
    Inside,
}

/// An upper bound of how deep the parser is at a token, in operators.
struct Nesting {
    /// For each open block, itself and its `elif`.
    blocks: Vec<usize>,
    /// For each open bracket, and outside of all, the operators since the last comma.
    runs: Vec<usize>,
}

impl Nesting {
    fn depth(&self) -> usize {
        self.blocks.iter().chain(&self.runs).sum()
    }

    fn follow(&mut self, tag: Tag, token: &Token) -> Tag {
        match (tag, token) {
            (_, Token::VariableStart | Token::BlockEnd) => {
                self.runs = vec![0];
                return Tag::Inside;
            }
            (_, Token::BlockStart) => {
                self.runs = vec![0];
                return Tag::Opens;
            }
            (Tag::Opens, Token::Ident(name)) => return self.statement(name),
            (Tag::Sets, Token::Assign) if self.runs.len() == 1 => {
                self.blocks.pop();
                return Tag::Inside;
            }
            (_, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen) => {
                self.add(BRACKET);
                self.runs.push(0);
            }
            (_, Token::ParenClose | Token::BracketClose | Token::BraceClose) if self.runs.len() > 1 => {
                self.runs.pop();
            }
            (_, Token::Comma | Token::Colon) => {
                self.runs.pop();
                self.runs.push(0);
            }
            // What they apply to is printed in parentheses.
            (_, Token::Minus | Token::Ident("if")) => self.add(BRACKET),
            (_, Token::Ident("and" | "else" | "in" | "is" | "not" | "or")) => self.add(1),
            (_, Token::Ident(_) | Token::Str(_) | Token::String(_) | Token::TemplateData(_)) => {}
            (_, Token::Int(_) | Token::Int128(_) | Token::Float(_)) => {}
            _ => self.add(1),
        }
        tag
    }

    fn add(&mut self, operators: usize) {
        if let Some(run) = self.runs.last_mut() {
            *run += operators;
        }
    }

    fn statement(&mut self, name: &str) -> Tag {
        match name {
            "elif" => self.blocks.last_mut().map_or((), |block| *block += BLOCK),
            "filter" | "for" | "if" | "set" | "with" => self.blocks.push(BLOCK),
            "else" => {}
            _ => drop(self.blocks.pop()),
        }
        if name == "set" { Tag::Sets } else { Tag::Inside }
    }
}
