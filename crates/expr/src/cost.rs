//! Costs of filters, functions and methods. Each is an upper bound that is computed from the arguments and charged
//! before the call.

use std::borrow::Cow;
use std::fmt::Write;

use minijinja::value::Kwargs;
use minijinja::{Error, Value as Jinja};

use crate::limits::{Charged, ITEM_BYTES, WIDTH_MAX, charge, failed, step, text_size, weigh};
use crate::operators::charge_needle;

#[derive(Clone, Copy)]
pub(crate) enum Cost {
    /// Returns a part of the value, or a number.
    Free,
    /// Creates nothing but visits everything.
    Walk,
    /// Creates nothing, except that a list that is searched for in text becomes text.
    Contains,
    /// Multiple of the length of all arguments as text.
    Text(usize),
    /// Length of the text, plus the characters that HTML escapes.
    Escape,
    /// Number of bytes for each item of all arguments.
    Items(usize),
    /// Number of bytes for each item; the items are compared.
    Sort(usize),
    /// Items are compared, and copied if they are text.
    Unique,
    Batch,
    Slices,
    Reverse,
    Sum,
    Replace,
    Join,
    Split,
    Lines,
    Indent,
    Json,
    /// Source code, which takes at most four bytes for each byte of the text.
    Literal,
    /// JSON text, in which a single digit can become an item of a list.
    Parse,
    Printf,
    StrFormat,
    /// A search with a pattern, linear in the text and the pattern; the filter charges what it creates.
    Search,
}

impl Cost {
    pub(crate) fn makes_lists(self) -> bool {
        matches!(
            self,
            Cost::Items(_)
                | Cost::Sort(_)
                | Cost::Unique
                | Cost::Batch
                | Cost::Slices
                | Cost::Reverse
                | Cost::Parse
        )
    }
}

/// Charges the cost of a call. `args` is the value, then the arguments; keyword arguments are last.
pub(crate) fn pay(cost: Cost, args: &[Jinja]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    match cost {
        Cost::Free => Ok(()),
        Cost::Search => {
            let bytes = total_text_len(args)?;
            step(bytes.saturating_mul(4))
        }
        Cost::Walk => args.iter().try_for_each(|arg| weigh(arg).map(drop)),
        Cost::Contains => {
            charge_needle(value)?;
            args[1..].iter().try_for_each(|arg| weigh(arg).map(drop))
        }
        Cost::Text(times) => charge(total_text_len(args)?.saturating_mul(times)),
        Cost::Items(bytes) => {
            total_text_len(&args[1..])?;
            charge(args.iter().map(count_items).sum::<usize>().saturating_mul(bytes))
        }
        Cost::Escape => charge(escaped_len(value)?),
        Cost::Sort(bytes) => pay_sort(value, args, bytes),
        Cost::Unique => {
            charge(weigh(value)?.text)?;
            pay_sort(value, args, 64)
        }
        Cost::Batch => {
            let filled = args.get(2).map_or(0, |_| count_arg(args.get(1)));
            charge(count_items(value).saturating_add(filled).saturating_mul(64))
        }
        Cost::Slices => charge(count_items(value).saturating_add(count_arg(args.get(1))).saturating_mul(96)),
        Cost::Reverse => match value.as_str() {
            Some(text) => charge(text.len()),
            None => charge(count_items(value).saturating_mul(ITEM_BYTES)),
        },
        Cost::Sum => pay_sum(value, args),
        Cost::Replace => pay_replace(value, args),
        Cost::Join => {
            let joiner = find_argument(args, 1, "d").map_or(Ok(0), |joiner| text_len(&joiner))?;
            charge(count_items(value).saturating_mul(joiner).saturating_add(text_len(value)?))
        }
        Cost::Split => {
            let text = text(value)?;
            let pieces = match args.get(1).and_then(|separator| separator.as_str()) {
                Some(separator) => text.matches(separator).count(),
                None => text.split_whitespace().count(), // the call itself refuses a value that is not text
            };
            charge(text.len() + (pieces + 1) * 40)
        }
        Cost::Lines => {
            let text = text(value)?;
            charge(text.len() + (text.matches('\n').count() + 1) * 40)
        }
        Cost::Indent => {
            let text = text(value)?;
            let width = find_argument(args, 1, "width").map_or(4, |width| count_arg(Some(&width)));
            let lines = text.matches('\n').count() + 2;
            charge(lines.saturating_mul(width).saturating_add(text.len()))
        }
        Cost::Json => pay_json(value, args),
        Cost::Literal => {
            let nodes = weigh(value)?.nodes.saturating_mul(8);
            charge(text_len(value)?.saturating_mul(4).saturating_add(nodes))
        }
        Cost::Parse => {
            let text = text(value)?;
            let parts = text.bytes().filter(|byte| b",[{:".contains(byte)).count() + 1;
            charge(text.len() + parts * ITEM_BYTES)
        }
        Cost::Printf => pay_format(value, args, '%'),
        Cost::StrFormat => pay_format(value, args, '{'),
    }
}

fn text_len(value: &Jinja) -> Result<usize, Error> {
    text_size(value).map(|size| size.len)
}

fn total_text_len(args: &[Jinja]) -> Result<usize, Error> {
    args.iter().map(text_len).sum()
}

/// Returns the number of items that iterating yields; for text, its characters.
fn count_items(value: &Jinja) -> usize {
    if value.is_kwargs() { 0 } else { value.len().unwrap_or(0) }
}

/// Returns a requested count. An invalid number is reported by the call itself.
fn count_arg(value: Option<&Jinja>) -> usize {
    value.and_then(Jinja::as_usize).unwrap_or(0)
}

/// Returns the value as the filters see it; a value that is not text is formatted under the meter.
fn text(value: &Jinja) -> Result<Cow<'_, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = Charged(String::new());
    write!(text, "{value}")?;
    Ok(Cow::Owned(text.0))
}

fn find_argument(args: &[Jinja], position: usize, name: &str) -> Option<Jinja> {
    if let Some(value) = args.get(position).filter(|value| !value.is_kwargs()) {
        return Some(value.clone());
    }
    let keywords = Kwargs::try_from(args.last().filter(|value| value.is_kwargs())?.clone()).ok()?;
    keywords.peek::<Option<Jinja>>(name).ok()?
}

/// Charges a sort, which compares each item about twenty times. With several keys it also copies their text.
fn pay_sort(value: &Jinja, args: &[Jinja], bytes: usize) -> Result<(), Error> {
    let weight = weigh(value)?;
    step((weight.nodes + weight.text / 64).saturating_mul(16))?;
    total_text_len(&args[1..])?;
    let keys = find_argument(args, args.len(), "attribute")
        .map_or(0, |by| by.as_str().map_or(0, |by| by.matches(',').count()));
    let copies = if keys == 0 { 0 } else { weight.text.saturating_mul(keys + 1) };
    charge(count_items(value).saturating_mul(bytes + keys * ITEM_BYTES).saturating_add(copies))
}

/// Charges a sum. minijinja would also add text and lists, with one copy of all previous ones per item.
fn pay_sum(value: &Jinja, args: &[Jinja]) -> Result<(), Error> {
    match find_argument(args, 2, "start") {
        Some(start) if !start.is_number() => Err(failed("`sum` adds numbers, so its start must be a number")),
        _ => step(count_items(value)),
    }
}

fn pay_replace(value: &Jinja, args: &[Jinja]) -> Result<(), Error> {
    let (Some(from), Some(to)) = (args.get(1), args.get(2)) else { return Ok(()) };
    let (text, from) = (text(value)?, text(from)?);
    let found = if from.is_empty() { text.len() + 1 } else { text.matches(&*from).count() };
    charge(found.saturating_mul(text_len(to)?).saturating_add(text.len()))
}

fn pay_json(value: &Jinja, args: &[Jinja]) -> Result<(), Error> {
    let indent = find_argument(args, 1, "indent").map_or(0, |indent| count_arg(Some(&indent)).max(2));
    let weight = weigh(value)?;
    let spaces = weight.nodes.saturating_mul(2).saturating_mul(indent.saturating_mul(weight.depth + 1));
    charge(escaped_len(value)?.saturating_add(weight.nodes * 4).saturating_add(spaces))
}

fn escaped_len(value: &Jinja) -> Result<usize, Error> {
    let size = text_size(value)?;
    Ok(size.len + size.escaped * 5)
}

/// Charges a format string, which can name its arguments repeatedly and pad them; the digits of the largest float
/// take 400 bytes.
fn pay_format(value: &Jinja, args: &[Jinja], opener: char) -> Result<(), Error> {
    let Some(format) = value.as_str() else { return Ok(()) };
    let given = total_text_len(&args[1..])?;
    let plain = format.replace(&opener.to_string().repeat(2), "");
    let mut bytes = format.len();
    for field in plain.split(opener).skip(1) {
        let padding = field_padding(field, opener)?;
        bytes = bytes.saturating_add(given).saturating_add(padding + 400);
    }
    charge(bytes)
}

/// Returns the bytes that width and precision add to a field: `(key)05.2f` of printf or `key:>05.2}` of Python's
/// `format`.
fn field_padding(field: &str, opener: char) -> Result<usize, Error> {
    let (key, spec) = match (opener, field.strip_prefix('(')) {
        ('{', _) => field.split('}').next().map_or(("", ""), |f| f.split_once(':').unwrap_or((f, ""))),
        (_, Some(keyed)) => keyed.split_once(')').unwrap_or((keyed, "")),
        (_, None) => ("", field),
    };
    let end = if opener == '{' { None } else { spec.find(|c| !"#0123456789 .+-".contains(c)) };
    let spec = &spec[..end.unwrap_or(spec.len())];
    if !key.is_ascii() || !spec.is_ascii() {
        return Err(failed("a field of a format can hold only ASCII characters")); // minijinja would panic
    }
    let mut bytes = 0;
    for number in spec.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()) {
        match number.parse::<usize>() {
            Ok(width) if width <= WIDTH_MAX => bytes += width,
            _ => return Err(failed(format!("a width in a format can be at most {WIDTH_MAX}"))),
        }
    }
    Ok(bytes)
}
