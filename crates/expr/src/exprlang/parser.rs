//! The grammar of expr-lang, with its precedences, as one pass from tokens to the translated source.

mod predicate;

use super::lexer::{Problem, Token, TokenKind, tokenize};
use super::{BoundName, FUNCTIONS, PREDICATES, SOURCE_MAX, Translated, ValueKind, error_at, literal};
use crate::pattern::check_pattern;
use crate::strict::{no_range, not_ordered, range_problem};
use crate::{CompileError, Value};
use predicate::Predicates;

type Parsed = Result<Translated, Problem>;

/// Maximum nesting, far more than people write and far less than the stack holds.
const DEPTH_MAX: usize = 60;

/// Functions of expr-lang that are refused by name.
const REFUSED: [&str; 11] = [
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "groupBy",
    "sortBy",
    "reduce",
    "sum",
    "first",
    "last",
    "keys",
];

pub(super) fn parse(
    source: &str,
    bind: &dyn Fn(&str) -> Result<BoundName, String>,
) -> Result<(Translated, Vec<CompileError>), CompileError> {
    let placed = |(message, at): Problem| error_at(source, message, at);
    if source.len() > SOURCE_MAX {
        return Err(placed((format!("the expression has more than {SOURCE_MAX} bytes"), 0)));
    }
    let tokens = tokenize(source).map_err(placed)?;
    let mut parser =
        Parser { tokens, next: 0, depth: 0, bind, predicates: Predicates::default(), warnings: Vec::new() };
    let translated = parser.expression().map_err(placed)?;
    parser.expect_end().map_err(placed)?;
    Ok((translated, parser.warnings.into_iter().map(placed).collect()))
}

struct Parser<'b> {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    bind: &'b dyn Fn(&str) -> Result<BoundName, String>,
    /// Predicates around the next token.
    predicates: Predicates,
    warnings: Vec<Problem>,
}

/// Returns the precedence of a binary operator, as in expr-lang.
fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "or" | "||" => 10,
        "and" | "&&" => 15,
        "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "contains" | "startsWith" | "endsWith" | "matches" => {
            COMPARISON
        }
        ".." => 25,
        "+" | "-" => 30,
        "*" | "/" | "%" => 60,
        "**" | "^" => 100,
        "??" => 150,
        _ => return None,
    })
}

/// Precedence of comparisons. `a < b < c` is refused: versions of expr-lang differ in its meaning.
const COMPARISON: u8 = 20;

/// Precedence of the operand of `not`, and of a sign.
const NOT: u8 = 50;
const SIGN: u8 = 90;

/// Operators that `not` may precede: `a not in b`.
const NEGATED: [&str; 5] = ["in", "contains", "startsWith", "endsWith", "matches"];

impl Parser<'_> {
    fn peek(&self) -> &TokenKind {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.at)
    }

    fn advance(&mut self) -> TokenKind {
        let kind = self.peek().clone();
        self.next += 1;
        kind
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), TokenKind::Sign(next) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: &str) -> Result<(), Problem> {
        let at = self.at();
        if self.takes(sign) {
            Ok(())
        } else {
            Err((format!("expected `{sign}`, found {}", self.shown()), at))
        }
    }

    fn expect_end(&self) -> Result<(), Problem> {
        let refused = |what: &str| Err((format!("{what} is not supported in a condition"), self.at()));
        match self.peek() {
            TokenKind::End => Ok(()),
            TokenKind::Sign("|") => refused("the pipe operator `|`"),
            TokenKind::Sign(";" | "=") => refused("a variable"),
            _ => Err((format!("unexpected {}", self.shown()), self.at())),
        }
    }

    fn shown(&self) -> String {
        match self.peek() {
            TokenKind::Number(text) | TokenKind::Name(text) => format!("`{text}`"),
            TokenKind::Text(_) => "a text".to_owned(),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::End => "the end".to_owned(),
        }
    }

    /// Returns the next binary operator, and whether `not` precedes it.
    fn operator(&self) -> Option<(String, bool)> {
        let word = |token: Option<&Token>| match token.map(|token| &token.kind) {
            Some(TokenKind::Sign(sign)) => Some((*sign).to_owned()),
            Some(TokenKind::Name(name)) => Some(name.clone()),
            _ => None,
        };
        let first = word(self.tokens.get(self.next))?;
        if first == "not" {
            let second =
                word(self.tokens.get(self.next + 1)).filter(|word| NEGATED.contains(&word.as_str()))?;
            return Some((second, true));
        }
        precedence(&first).map(|_| (first, false))
    }

    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((format!("the expression is nested more than {DEPTH_MAX} deep"), self.at()));
        }
        let condition = self.binary(0)?;
        let translated = if self.takes("?") {
            let then = self.expression()?;
            self.expect(":")?;
            let other = self.expression()?;
            let kind = if then.kind == other.kind { then.kind } else { ValueKind::Unknown };
            let source = format!("({} if {} else {})", then.source, strict(&condition), other.source);
            Translated::new(source, kind)
        } else {
            condition
        };
        self.depth -= 1;
        Ok(translated)
    }

    fn binary(&mut self, lowest: u8) -> Parsed {
        let mut left = self.unary()?;
        let mut is_comparison = false;
        while let Some((operator, negated)) = self.operator()
            && let Some(rank) = precedence(&operator)
            && rank >= lowest
        {
            let at = self.at();
            if rank == COMPARISON && is_comparison {
                let message = format!("`{operator}` follows a comparison: write `a < b and b < c`");
                return Err((message, at));
            }
            is_comparison = rank == COMPARISON;
            self.next += 1 + usize::from(negated);
            // Powers are right-associative.
            let right = self.binary(if rank == 100 { rank } else { rank + 1 })?;
            left = self.combine(&operator, at, &left, &right)?;
            if negated {
                left.source = format!("(not {})", left.source);
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err((format!("the expression is nested more than {DEPTH_MAX} deep"), self.at()));
        }
        let at = self.at();
        let translated = if self.takes("!") || self.takes_word("not") {
            let operand = self.binary(NOT)?;
            if !matches!(operand.kind, ValueKind::Boolean | ValueKind::Unknown) {
                let noun = operand.kind.noun();
                return Err((
                    format!("`not` takes true or false, not {noun}: write `a not in b` or compare"),
                    at,
                ));
            }
            Translated::new(format!("(not {})", strict(&operand)), ValueKind::Boolean)
        } else if self.takes("-") {
            let operand = self.binary(SIGN)?;
            Translated::new(format!("(-{})", operand.source), ValueKind::Number)
        } else if self.takes("+") {
            self.binary(SIGN)?
        } else {
            let primary = self.primary()?;
            self.members(primary)?
        };
        self.depth -= 1;
        Ok(translated)
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), TokenKind::Name(next) if next == word);
        self.next += usize::from(is_next);
        is_next
    }

    fn primary(&mut self) -> Parsed {
        let at = self.at();
        match self.advance() {
            TokenKind::Number(text) => {
                let source = format!("({text})");
                Ok(Translated { source, kind: ValueKind::Number, literal: serde_json::from_str(&text).ok() })
            }
            TokenKind::Text(text) => {
                let value = Value::String(text);
                Ok(Translated { source: literal(&value), kind: ValueKind::Text, literal: Some(value) })
            }
            TokenKind::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Sign("[") => {
                let items = self.list("]")?;
                Ok(Translated::new(format!("[{}]", items.join(",")), ValueKind::List))
            }
            TokenKind::Sign("{") => self.map(),
            TokenKind::Sign("#") => self.item(at),
            // `.field` of a predicate is short for `#.field`.
            TokenKind::Sign("." | "?.") if self.predicates.is_inside() => {
                self.next -= 1;
                self.item(at)
            }
            TokenKind::Name(name) => self.name(&name, at),
            _ => {
                self.next -= 1;
                Err((format!("expected a value, found {}", self.shown()), at))
            }
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Parsed {
        let known = |source: &str, kind| Ok(Translated::new(source.to_owned(), kind));
        match name {
            "true" | "false" => return known(name, ValueKind::Boolean),
            "nil" => return known("none", ValueKind::Nil),
            "let" => return Err(("a variable is not supported in a condition".to_owned(), at)),
            _ => {}
        }
        if !matches!(self.peek(), TokenKind::Sign("(")) {
            let BoundName { source, kind } =
                self.predicates.bind(name, self.bind).map_err(|message| (message, at))?;
            return Ok(Translated::new(source, kind));
        }
        if let Some((predicate, kind)) = PREDICATES.iter().find(|(predicate, _)| *predicate == name) {
            return self.predicate_call(predicate, *kind, at);
        }
        let Some((_, filter)) = FUNCTIONS.iter().find(|(function, _)| *function == name) else {
            let functions = FUNCTIONS.iter().map(|(function, _)| *function);
            let known: Vec<&str> = functions.chain(PREDICATES.iter().map(|(name, _)| *name)).collect();
            let why = match REFUSED.contains(&name) {
                true => format!("the function `{name}` is not supported in a condition"),
                false => format!("there is no function `{name}`"),
            };
            return Err((format!("{why}; use {}", known.join(", ")), at));
        };
        self.expect("(")?;
        let argument = self.expression()?;
        self.expect(")")?;
        let is_number = ["len", "int", "float"].contains(&name);
        let kind = if is_number { ValueKind::Number } else { ValueKind::Text };
        Ok(Translated::new(format!("(({})|{filter})", argument.source), kind))
    }

    fn list(&mut self, end: &str) -> Result<Vec<String>, Problem> {
        let mut items = Vec::new();
        while !self.takes(end) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.takes(end) {
                    break;
                }
            }
            items.push(self.expression()?.source);
        }
        Ok(items)
    }

    fn map(&mut self) -> Parsed {
        let mut fields = Vec::new();
        while !self.takes("}") {
            if !fields.is_empty() {
                self.expect(",")?;
                if self.takes("}") {
                    break;
                }
            }
            let at = self.at();
            let key = match self.advance() {
                TokenKind::Name(key) | TokenKind::Text(key) => key,
                _ => return Err(("a key of a map is a name or a text".to_owned(), at)),
            };
            self.expect(":")?;
            let value = self.expression()?;
            fields.push(format!("{}:{}", literal(&Value::String(key)), value.source));
        }
        Ok(Translated::new(format!("{{ {} }}", fields.join(",")), ValueKind::Map))
    }

    /// Parses the members of a value: `.name`, `?.name`, `[index]`, `[from:to]`.
    fn members(&mut self, mut value: Translated) -> Parsed {
        let first = self.next;
        loop {
            let at = self.at();
            if self.takes(".") || self.takes("?.") {
                if self.takes("[") {
                    value = self.index(&value)?;
                    continue;
                }
                let TokenKind::Name(name) = self.advance() else {
                    return Err(("a name follows `.`".to_owned(), at));
                };
                if matches!(self.peek(), TokenKind::Sign("(")) {
                    return Err((format!("the method `{name}` is not supported in a condition"), at));
                }
                let source = format!("{}[{}]", value.source, literal(&Value::String(name)));
                value = Translated::new(source, ValueKind::Unknown);
            } else if self.takes("[") {
                value = self.index(&value)?;
            } else if self.next == first {
                return Ok(value);
            } else {
                // A missing value is nil.
                let source = format!("({}|default(none))", value.source);
                return Ok(Translated::new(source, ValueKind::Unknown));
            }
        }
    }

    fn index(&mut self, value: &Translated) -> Parsed {
        let from = if matches!(self.peek(), TokenKind::Sign(":")) {
            String::new()
        } else {
            self.expression()?.source
        };
        let source = if self.takes(":") {
            let to = if matches!(self.peek(), TokenKind::Sign("]")) {
                String::new()
            } else {
                self.expression()?.source
            };
            format!("{}[{from}:{to}]", value.source)
        } else {
            format!("{}[{from}]", value.source)
        };
        self.expect("]")?;
        Ok(Translated::new(source, ValueKind::Unknown))
    }

    fn combine(&mut self, operator: &str, at: usize, left: &Translated, right: &Translated) -> Parsed {
        let (a, b) = (&left.source, &right.source);
        let boolean = |source: String| Translated::new(source, ValueKind::Boolean);
        let number = |source: String| Translated::new(source, ValueKind::Number);
        Ok(match operator {
            "or" | "||" => logic("or", left, right),
            "and" | "&&" => logic("and", left, right),
            "contains" => boolean(format!("({b} in {a})")),
            "startsWith" => boolean(format!("({a} is startingwith({b}))")),
            "endsWith" => boolean(format!("({a} is endingwith({b}))")),
            "matches" => {
                right
                    .literal
                    .as_ref()
                    .and_then(Value::as_str)
                    .map_or(Ok(()), check_pattern)
                    .map_err(|message| (message, at))?;
                boolean(format!("({a} is matching({b}))"))
            }
            "<" | "<=" | ">" | ">=" => {
                let (of_left, of_right) = (left.kind, right.kind);
                let may_be_ordered = of_left.may_be_ordered() && of_right.may_be_ordered();
                if !may_be_ordered || !of_left.overlaps(of_right) {
                    return Err((not_ordered(operator, of_left.noun(), of_right.noun()), at));
                }
                boolean(format!("(({a}|strict_order({b},\"{operator}\")) {operator} 0)"))
            }
            "==" | "!=" => {
                self.warn_of_unequal(operator, at, left.kind, right.kind);
                let equal = format!("({a} is strict_equal({b}))");
                boolean(if operator == "==" { equal } else { format!("(not {equal})") })
            }
            "in" => boolean(format!("({a} in {b})")),
            ".." => {
                let of_ends = (left.kind, right.kind);
                if !of_ends.0.overlaps(ValueKind::Number) || !of_ends.1.overlaps(ValueKind::Number) {
                    return Err((no_range(of_ends.0.noun(), of_ends.1.noun()), at));
                }
                let end = |side: &Translated| side.literal.as_ref().and_then(Value::as_i64);
                let too_long = end(left).zip(end(right)).and_then(|(from, to)| range_problem(from, to));
                if let Some(message) = too_long {
                    return Err((message, at));
                }
                Translated::new(format!("({a}|strict_range({b}))"), ValueKind::List)
            }
            "+" => {
                let kind = if left.kind == right.kind { left.kind } else { ValueKind::NumberOrText };
                let is_sum = matches!(kind, ValueKind::Number | ValueKind::Text);
                let kind = if is_sum { kind } else { ValueKind::NumberOrText };
                Translated::new(format!("({a} + {b})"), kind)
            }
            "^" | "**" => number(format!("({a} ** {b})")),
            "%" => number(format!("({a}|strict_remainder({b}))")),
            "??" => {
                let source = format!(
                    "([({a})|default(none),({b})|default(none)]|reject(\"none\")|first|default(none))"
                );
                Translated::new(source, ValueKind::Unknown)
            }
            _ => number(format!("({a} {operator} {b})")),
        })
    }

    /// Notes that a comparison always has the same result. Any value may turn out to be nil.
    fn warn_of_unequal(&mut self, operator: &str, at: usize, left: ValueKind, right: ValueKind) {
        if left.overlaps(right) || [left, right].contains(&ValueKind::Nil) {
            return;
        }
        let always = if operator == "==" { "false" } else { "true" };
        let (left, right) = (left.noun(), right.noun());
        let message = format!("`{operator}` compares {left} with {right}, so it is always {always}");
        self.warnings.push((message, at));
    }
}

/// Returns a source that is true or false, which the language checks and minijinja does not.
fn strict(side: &Translated) -> String {
    match side.kind {
        ValueKind::Boolean => side.source.clone(),
        _ => format!("(({})|strict_bool)", side.source),
    }
}

fn logic(word: &str, left: &Translated, right: &Translated) -> Translated {
    Translated::new(format!("({} {word} {})", strict(left), strict(right)), ValueKind::Boolean)
}
