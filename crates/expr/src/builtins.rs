//! Filters, tests, functions and methods of expressions. Each is minijinja's own and is called after its cost was
//! charged. Anything that is not listed does not exist, so an expression cannot read a clock, a random source or the
//! outside.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use minijinja::functions::{self, Function};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{FunctionArgs, FunctionResult, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, Output, State, UndefinedBehavior, Value as Jinja, filters, tests};
use minijinja_contrib::pycompat;

use crate::cost::{Cost, pay};
use crate::limits::{Charged, FUEL_MAX, ITEM_BYTES, failed};
use crate::{each, encoded, literals, numbers, operators, pattern, satisfying, strict, texts, time};

/// Environment that every expression is compiled and run with.
pub(crate) struct Builtins {
    pub(crate) env: Environment<'static>,
    filters: BTreeSet<&'static str>,
    tests: BTreeSet<&'static str>,
}

/// Functions of expressions; `now` is replaced by a value of the scope. What is set in a `namespace` is copied, so that loops
/// build no cycles.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];

pub(crate) fn builtins() -> &'static Builtins {
    static BUILTINS: OnceLock<Builtins> = OnceLock::new();
    BUILTINS.get_or_init(Builtins::new)
}

/// Returns the names of all filters, sorted.
pub fn filter_names() -> impl Iterator<Item = &'static str> + Clone {
    builtins().filters.iter().copied()
}

/// Returns the names of all tests, sorted.
pub fn test_names() -> impl Iterator<Item = &'static str> + Clone {
    builtins().tests.iter().copied()
}

impl Builtins {
    pub(crate) fn has_filter(&self, name: &str) -> bool {
        self.filters.contains(name)
    }

    pub(crate) fn has_test(&self, name: &str) -> bool {
        self.tests.contains(name)
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        FUNCTIONS.contains(&name)
    }

    fn new() -> Builtins {
        let mut env = Environment::empty();
        env.set_undefined_behavior(UndefinedBehavior::Chainable);
        env.set_fuel(Some(FUEL_MAX));
        env.set_debug(false);
        env.set_syntax(syntax());
        env.set_formatter(write_value);
        env.set_unknown_method_callback(call_method);
        env.add_function("range", operators::range);
        env.add_function("namespace", charge_calls(Cost::Items(64), functions::namespace));
        env.add_function("dict", charge_calls(Cost::Items(64), functions::dict));
        operators::register(&mut env);
        each::register(&mut env);
        // `guarded` prints this filter as another one, with its expression as a text.
        let filters = BTreeSet::from([each::EACH]);
        let mut builtins = Builtins { env, filters, tests: BTreeSet::new() };
        builtins.text_filters();
        builtins.list_filters();
        builtins.value_filters();
        builtins.cheap_tests();
        builtins.walking_tests();
        builtins
    }

    fn text_filters(&mut self) {
        self.filter("as_python", Cost::Literal, literals::as_python);
        self.filter("b64decode", Cost::Text(1), encoded::b64decode);
        self.filter("b64encode", Cost::Text(2), encoded::b64encode);
        self.filter("capitalize", Cost::Text(3), filters::capitalize);
        self.filter("e", Cost::Escape, filters::escape);
        self.filter("escape", Cost::Escape, filters::escape);
        self.filter("format", Cost::Printf, filters::format);
        self.filter("fromjson", Cost::Parse, encoded::fromjson);
        self.filter("in_python", Cost::Text(4), literals::in_python);
        self.filter("in_python_bytes", Cost::Text(4), literals::in_python_bytes);
        self.filter("indent", Cost::Indent, filters::indent);
        self.filter("join", Cost::Join, filters::join);
        self.filter("lines", Cost::Lines, filters::lines);
        self.filter("lower", Cost::Text(3), filters::lower);
        self.filter("regex_findall", Cost::Search, texts::regex_findall);
        self.filter("regex_replace", Cost::Search, texts::regex_replace);
        self.filter("regex_search", Cost::Search, texts::regex_search);
        self.filter("replace", Cost::Replace, filters::replace);
        self.filter("safe", Cost::Text(1), filters::safe);
        self.filter("sha256", Cost::Text(1), texts::sha256);
        self.filter("sha512", Cost::Text(1), texts::sha512);
        self.filter("split", Cost::Split, filters::split);
        self.filter("strict_bool", Cost::Free, require_bool);
        self.filter("string", Cost::Text(1), filters::string);
        self.filter("title", Cost::Text(3), filters::title);
        self.filter("tojson", Cost::Json, filters::tojson);
        self.filter("trim", Cost::Text(1), filters::trim);
        self.filter("truncate", Cost::Walk, texts::truncate);
        self.filter("upper", Cost::Text(3), filters::upper);
        self.filter("urlencode", Cost::Text(3), filters::urlencode);
    }

    fn list_filters(&mut self) {
        self.filter("batch", Cost::Batch, filters::batch);
        self.filter("chain", Cost::Items(64), chain_values);
        self.filter("dictsort", Cost::Sort(128), filters::dictsort);
        self.filter("groupby", Cost::Sort(96), filters::groupby);
        self.filter("items", Cost::Items(64), filters::items);
        self.filter("keys", Cost::Items(ITEM_BYTES), list_keys);
        self.filter("list", Cost::Items(24), filters::list);
        self.filter("map", Cost::Items(24), filters::map);
        self.filter("reject", Cost::Items(24), filters::reject);
        self.filter("rejectattr", Cost::Items(24), filters::rejectattr);
        self.filter("reverse", Cost::Reverse, filters::reverse);
        self.filter("select", Cost::Items(24), filters::select);
        self.filter("selectattr", Cost::Items(24), filters::selectattr);
        self.filter("slice", Cost::Slices, filters::slice);
        self.filter("sort", Cost::Sort(32), filters::sort);
        self.filter("unique", Cost::Unique, filters::unique);
        self.filter("values", Cost::Items(ITEM_BYTES), list_values);
        self.filter("zip", Cost::Items(64), filters::zip);
    }

    fn value_filters(&mut self) {
        self.filter("add_seconds", Cost::Text(1), time::add_seconds);
        self.filter("datetimeformat", Cost::Text(1), time::strftime);
        self.filter("isoformat", Cost::Text(1), time::isoformat);
        self.filter("strftime", Cost::Text(1), time::strftime);
        self.filter("timestamp", Cost::Text(1), time::timestamp);
        self.filter("abs", Cost::Free, filters::abs);
        self.filter("attr", Cost::Walk, filters::attr);
        self.filter("bool", Cost::Free, filters::bool);
        self.filter("count", Cost::Free, filters::length);
        self.filter("d", Cost::Free, filters::default);
        self.filter("default", Cost::Free, filters::default);
        self.filter("first", Cost::Free, filters::first);
        self.filter("float", Cost::Text(1), numbers::float);
        self.filter("get", Cost::Free, get_or_default);
        self.filter("int", Cost::Text(1), numbers::int);
        self.filter("last", Cost::Free, filters::last);
        self.filter("length", Cost::Free, filters::length);
        self.filter("max", Cost::Walk, filters::max);
        self.filter("min", Cost::Walk, filters::min);
        self.filter("round", Cost::Free, filters::round);
        self.filter("strict_order", Cost::Walk, strict::order);
        self.filter("strict_range", Cost::Free, strict::range);
        self.filter("strict_remainder", Cost::Walk, strict::remainder);
        self.filter("sum", Cost::Sum, filters::sum);
    }

    fn cheap_tests(&mut self) {
        self.test("boolean", Cost::Free, tests::is_boolean);
        self.test("defined", Cost::Free, tests::is_defined);
        self.test("divisibleby", Cost::Free, is_divisible_by);
        self.test("even", Cost::Free, tests::is_even);
        self.test("false", Cost::Free, tests::is_false);
        self.test("float", Cost::Free, tests::is_float);
        self.test("integer", Cost::Free, tests::is_integer);
        self.test("int", Cost::Free, tests::is_integer);
        self.test("iterable", Cost::Free, tests::is_iterable);
        self.test("mapping", Cost::Free, tests::is_mapping);
        self.test("none", Cost::Free, tests::is_none);
        self.test("number", Cost::Free, tests::is_number);
        self.test("odd", Cost::Free, tests::is_odd);
        self.test("sequence", Cost::Free, tests::is_sequence);
        self.test("string", Cost::Free, tests::is_string);
        self.test("true", Cost::Free, tests::is_true);
        self.test("undefined", Cost::Free, tests::is_undefined);
    }

    fn walking_tests(&mut self) {
        for name in ["eq", "equalto", "=="] {
            self.test(name, Cost::Walk, tests::is_eq);
        }
        for name in ["ne", "!="] {
            self.test(name, Cost::Walk, tests::is_ne);
        }
        for name in ["lt", "lessthan", "<"] {
            self.test(name, Cost::Walk, tests::is_lt);
        }
        for name in ["le", "<="] {
            self.test(name, Cost::Walk, tests::is_le);
        }
        for name in ["gt", "greaterthan", ">"] {
            self.test(name, Cost::Walk, tests::is_gt);
        }
        for name in ["ge", ">="] {
            self.test(name, Cost::Walk, tests::is_ge);
        }
        self.test("in", Cost::Contains, tests::is_in);
        self.test("endingwith", Cost::Walk, tests::is_endingwith);
        self.test("lower", Cost::Walk, tests::is_lower);
        self.test("matching", Cost::Walk, pattern::is_matching);
        self.test("satisfying", Cost::Walk, satisfying::is_satisfying);
        self.test("startingwith", Cost::Walk, tests::is_startingwith);
        self.test("strict_equal", Cost::Walk, strict::is_equal);
        self.test("upper", Cost::Walk, tests::is_upper);
    }

    fn filter<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.filters.insert(name);
        self.env.add_filter(name, charge_calls(cost, filter));
    }

    fn test<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, test: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.tests.insert(name);
        match cost {
            Cost::Free => self.env.add_test(name, test),
            _ => self.env.add_test(name, charge_calls(cost, test)),
        }
    }
}

/// Returns the syntax of templates. A trailing newline is kept, as in any other string of a definition.
pub(crate) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default()
}

fn charge_calls<F, Rv, Args>(
    cost: Cost,
    function: F,
) -> impl Fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Jinja, Error> + Send + Sync + 'static
where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let function = Jinja::from_function(function);
    move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        pay(cost, &args)?;
        check_created(cost, function.call(state, &args)?)
    }
}

/// Checks lists and maps that a call created, and turns lazy iterators into lists.
fn check_created(cost: Cost, value: Jinja) -> Result<Jinja, Error> {
    let value = match value.kind() {
        ValueKind::Iterable => operators::collect(&[&value])?,
        _ => value,
    };
    if cost.makes_lists() { operators::check_created(value) } else { Ok(value) }
}

/// Writes a value that a template outputs or captures.
fn write_value(out: &mut Output, _: &mut State, value: &Jinja) -> Result<(), Error> {
    use std::fmt::Write;
    write!(Charged(out), "{value}").map_err(Error::from)
}

/// Calls a method that Python has on strings, maps and lists.
fn call_method(state: &mut State, value: &Jinja, name: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let with_value = || std::iter::once(value.clone()).chain(args.iter().cloned()).collect::<Vec<_>>();
    let cost = match name {
        "capitalize" | "lower" | "title" | "upper" => Cost::Text(3),
        "lstrip" | "rstrip" | "strip" => Cost::Text(1),
        "format" => Cost::StrFormat,
        "items" | "keys" | "values" => Cost::Items(64),
        "join" => Cost::Join,
        "replace" => Cost::Replace,
        "split" => Cost::Split,
        "splitlines" => Cost::Lines,
        _ => Cost::Walk,
    };
    match (name, args) {
        ("join", [list]) => pay(cost, &[list.clone(), value.clone()])?,
        _ => pay(cost, &with_value())?,
    }
    match (name, args) {
        ("isoformat", []) => return time::isoformat(value).map(Jinja::from),
        ("timestamp", []) => return time::timestamp(value),
        ("strftime", [format]) => return time::strftime(value, format.as_str()).map(Jinja::from),
        _ => {}
    }
    check_created(cost, pycompat::unknown_method_callback(state, value, name, args)?)
}

/// Chains maps into a map in which the last value wins, and anything else into a list.
fn chain_values(first: &Jinja, others: &[Jinja]) -> Result<Jinja, Error> {
    let parts: Vec<&Jinja> = std::iter::once(first).chain(others).collect();
    if !parts.iter().all(|part| part.kind() == ValueKind::Map) {
        return operators::collect(&parts);
    }
    let pairs = parts.iter().filter_map(|part| part.as_object()?.try_iter_pairs()).flatten();
    Ok(Jinja::from_pairs(pairs))
}

fn list_keys(map: &Jinja) -> Result<Jinja, Error> {
    list_pairs(map, "keys").map(|pairs| pairs.into_iter().map(|(key, _)| key).collect())
}

fn list_values(map: &Jinja) -> Result<Jinja, Error> {
    list_pairs(map, "values").map(|pairs| pairs.into_iter().map(|(_, value)| value).collect())
}

fn list_pairs(map: &Jinja, filter: &str) -> Result<Vec<(Jinja, Jinja)>, Error> {
    let object = map.as_object().filter(|_| map.kind() == ValueKind::Map);
    let pairs = object.and_then(|object| object.try_iter_pairs());
    pairs
        .map(Iterator::collect)
        .ok_or_else(|| failed(format!("`{filter}` needs a map, not a {}", map.kind())))
}

/// Returns the value under a key or an index, or the default if it is missing.
fn get_or_default(value: &Jinja, key: &Jinja, default: Option<Jinja>) -> Result<Jinja, Error> {
    let found = operators::item(value, key).ok().filter(|found| !found.is_undefined());
    Ok(found.or(default).unwrap_or(Jinja::from(())))
}

/// Returns the value if it is true or false.
fn require_bool(value: &Jinja) -> Result<Jinja, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(value.clone()),
        kind => Err(failed(format!("a condition is true or false, not a value of the type {kind}"))),
    }
}

/// Returns whether a number is divisible; minijinja's own test panics on zero.
fn is_divisible_by(value: &Jinja, by: &Jinja) -> Result<bool, Error> {
    if !by.is_true() {
        return Err(failed("nothing is divisible by 0"));
    }
    Ok(tests::is_divisibleby(value, by))
}
