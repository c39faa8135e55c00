//! The filter `strict_each`: an expression that is evaluated for each item of a list.
//!
//! `list|strict_each("any", it > least, least=ctx.least)` has the expression in place. `guarded` prints it as the text of a
//! program of its own, because minijinja has no functions as values, and the filter evaluates this program under the
//! meter of the whole.

use std::sync::Arc;

use minijinja::value::{Object, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, State, Value as Jinja};

use crate::limits::{ITEM_BYTES, burn, charge, failed, step};
use crate::operators::check_created;
use crate::recent::{Code, Form, get_compiled};
use crate::strict::noun;

/// Name of the filter in a source text.
pub(crate) const EACH: &str = "strict_each";

/// Name of the filter that it is printed as.
pub(crate) const EACH_PRINTED: &str = "__each";

/// Filter at the end of a printed expression, which charges what its evaluation took.
pub(crate) const BURNED: &str = "__burned";

/// Name of the item in an expression.
pub(crate) const ITEM: &str = "it";

/// What is made of the values of all items.
pub(crate) const MODES: [&str; 7] = ["all", "any", "none", "one", "filter", "count", "map"];

/// Maximum nesting of expressions for each item. One level doubles the marks of escaped quotes in the printed text, and
/// takes some KiB of stack in an evaluation. People write two levels.
pub(crate) const NESTING_MAX: usize = 4;

/// Maximum length of one printed expression, so that each is compiled once and cached, see `recent`.
pub(crate) const PRINTED_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn register(env: &mut Environment<'static>) {
    env.add_filter(EACH_PRINTED, evaluate_each);
    env.add_filter(BURNED, charge_evaluation);
}

/// Names that an expression for each item reads: the item, and what is passed by name.
#[derive(Debug)]
struct ItemScope {
    item: Jinja,
    passed: Jinja,
}

impl Object for ItemScope {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        match key.as_str()? {
            ITEM => Some(self.item.clone()),
            name => self.passed.get_attr(name).ok().filter(|value| !value.is_undefined()),
        }
    }
}

fn evaluate_each(list: &Jinja, mode: &str, printed: &str, passed: &Jinja) -> Result<Jinja, Error> {
    if !matches!(list.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(failed(not_a_list(mode, noun(list))));
    }
    step(printed.len() / 64)?;
    let code = get_compiled(Form::Expression, &Arc::<str>::from(printed))
        .map_err(|error| failed(error.to_string()))?;
    let Code::Expression(code) = &*code else { return Err(failed("an expression was compiled as text")) };
    let each = Each { mode, code, passed };
    let items = list.try_iter()?;
    Ok(match mode {
        "all" => Jinja::from(!each.has_verdict(items, false)?),
        "any" => Jinja::from(each.has_verdict(items, true)?),
        "none" => Jinja::from(!each.has_verdict(items, true)?),
        "one" => Jinja::from(each.count(items)? == 1),
        "count" => Jinja::from(each.count(items)?),
        "filter" => each.filter(items)?,
        _ => each.map(items)?,
    })
}

/// Describes a value that has no items, with its repair.
pub(crate) fn not_a_list(mode: &str, noun: &str) -> String {
    let repair = match noun {
        "nil" => "test first that the value is there: `x != nil and …`",
        "a map" => "write a member of it that is a list",
        _ => "declare a schema with `type: array` for the value",
    };
    format!("`{mode}` needs a list, not {noun}: {repair}")
}

/// Describes a predicate that does not decide.
pub(crate) fn not_a_verdict(mode: &str, noun: &str) -> String {
    format!("`{mode}` needs an expression that is true or false for each item, not {noun}")
}

/// An expression with what it reads, except for the item.
struct Each<'e> {
    mode: &'e str,
    code: &'e Expression<'static, 'static>,
    passed: &'e Jinja,
}

impl Each<'_> {
    fn value(&self, item: &Jinja) -> Result<Jinja, Error> {
        let scope = ItemScope { item: item.clone(), passed: self.passed.clone() };
        self.code.eval(Jinja::from_object(scope))
    }

    fn verdict(&self, item: &Jinja) -> Result<bool, Error> {
        let value = self.value(item)?;
        match value.kind() {
            ValueKind::Bool => Ok(value.is_true()),
            _ => Err(failed(not_a_verdict(self.mode, noun(&value)))),
        }
    }

    /// Returns whether an item has the verdict. Items after the first such item are not evaluated.
    fn has_verdict(&self, items: impl Iterator<Item = Jinja>, wanted: bool) -> Result<bool, Error> {
        for item in items {
            if self.verdict(&item)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&self, mut items: impl Iterator<Item = Jinja>) -> Result<usize, Error> {
        items.try_fold(0, |count, item| Ok(count + usize::from(self.verdict(&item)?)))
    }

    fn filter(&self, items: impl Iterator<Item = Jinja>) -> Result<Jinja, Error> {
        let mut kept = Vec::new();
        for item in items {
            if self.verdict(&item)? {
                charge(ITEM_BYTES)?;
                kept.push(item);
            }
        }
        check_created(Jinja::from(kept))
    }

    fn map(&self, items: impl Iterator<Item = Jinja>) -> Result<Jinja, Error> {
        let mut values = Vec::new();
        for item in items {
            charge(ITEM_BYTES)?;
            values.push(self.value(&item)?);
        }
        check_created(Jinja::from(values))
    }
}

/// Charges the instructions of the evaluation that ends with this filter. minijinja counts those of each evaluation alone.
fn charge_evaluation(state: &State<'_, '_>, value: Jinja) -> Result<Jinja, Error> {
    let (consumed, _) = state.fuel_levels().unwrap_or_default();
    burn(consumed).map_err(|_| Error::from(ErrorKind::OutOfFuel))?;
    Ok(value)
}
