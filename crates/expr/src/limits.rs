//! Limits of an evaluation: fuel, steps, bytes and depth, counted by one meter per evaluation.
//!
//! | grows | bounded by |
//! |---|---|
//! | instructions, loops, list and map literals | fuel (minijinja counts instructions) |
//! | expressions for each item of a list (`each`) | fuel that all of them share, and their nesting |
//! | text and lists made by operators, filters, functions, methods, output and captures | bytes, charged before they are made |
//! | comparing, searching, sorting, hashing | steps, charged by the size of the operands |
//! | nesting of values (native stack), parts shared many times | depth and text of a new list or map, checked when it is made |
//! | nesting of source text (native stack) | brackets, operators and blocks, counted before parsing |
//! | the result | its own count of bytes while it is turned into JSON |
//!
//! The first three need the operators of minijinja replaced (`guarded`) and its filters wrapped (`builtins`).

use std::cell::Cell;
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value as Jinja};

use crate::EvalError;

/// Maximum number of instructions of one evaluation. A loop body costs about ten, so a loop over 5,000 items ends
/// within a few milliseconds; a guard costs less than twenty.
pub const FUEL_MAX: u64 = 50_000;

/// Maximum number of bytes that one evaluation may create in intermediate values, and again in its result. Values
/// over 64 KiB are artifacts, so 1 MiB is more than any use needs and small enough for a thousand concurrent
/// evaluations. The result may additionally hold the values that were read, so that a large value can be passed on.
pub const BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of values, or of 64-byte blocks of text, that comparing, searching and sorting may visit; this
/// takes some tens of milliseconds.
const STEPS_MAX: usize = 1_000_000;

/// Maximum nesting of lists and objects, as in serde_json's parser; deeper values could overflow the stack.
pub(crate) const DEPTH_MAX: usize = 128;

/// Maximum nesting of a result. Results are stored inside other objects and must be readable there.
pub(crate) const RESULT_DEPTH_MAX: usize = 100;

/// Maximum nesting of source text, in operators (see `tokens`). It takes less than 1 MiB of stack in an unoptimised
/// build and is far more than a person writes.
pub(crate) const NESTING_MAX: usize = 500;

/// Maximum width and precision of a field in a format string; minijinja's formatting panics on very large ones.
pub(crate) const WIDTH_MAX: usize = 1_000;

/// Size of a value in a list; a JSON value and its share of a map have the same order of magnitude.
pub(crate) const ITEM_BYTES: usize = 24;

#[derive(Clone, Copy)]
enum Limit {
    Bytes,
    Steps,
}

#[derive(Clone, Copy)]
struct Meter {
    bytes: usize,
    steps: usize,
    fuel: u64,
    result: usize,
    hit: Option<Limit>,
}

const FULL: Meter =
    Meter { bytes: BYTES_MAX, steps: STEPS_MAX, fuel: FUEL_MAX, result: BYTES_MAX, hit: None };

thread_local! {
    /// Meter of the current evaluation. An evaluation runs on one thread, and filters cannot be passed any other
    /// state.
    static METER: Cell<Meter> = const { Cell::new(FULL) };
}

/// Runs one evaluation on a full meter, where `given` is the size of its inputs in bytes. A panic inside minijinja
/// fails only this evaluation.
pub(crate) fn with_meter<T>(
    given: usize,
    run: impl FnOnce() -> Result<T, EvalError>,
) -> Result<T, EvalError> {
    let outer = METER.replace(Meter { result: BYTES_MAX.saturating_add(given), ..FULL });
    let result = catch_unwind(AssertUnwindSafe(run));
    METER.set(outer);
    result.unwrap_or_else(|_| Err(EvalError::Failed("the expression engine cannot evaluate this".to_owned())))
}

/// Charges `bytes`; call it before they are created.
pub(crate) fn charge(bytes: usize) -> Result<(), Error> {
    let mut meter = METER.get();
    let left = meter.bytes.checked_sub(bytes);
    meter.bytes = left.unwrap_or(0);
    meter.hit = if left.is_none() { Some(Limit::Bytes) } else { meter.hit };
    METER.set(meter);
    left.map(drop).ok_or_else(too_large)
}

/// Charges `steps`; call it before or while the values are visited.
pub(crate) fn step(steps: usize) -> Result<(), Error> {
    let mut meter = METER.get();
    let left = meter.steps.checked_sub(steps);
    meter.steps = left.unwrap_or(0);
    meter.hit = if left.is_none() { Some(Limit::Steps) } else { meter.hit };
    METER.set(meter);
    left.map(drop).ok_or_else(|| Error::from(ErrorKind::OutOfFuel))
}

/// Charges the fuel that one of several texts of a template used.
pub(crate) fn burn(fuel: u64) -> Result<(), EvalError> {
    let mut meter = METER.get();
    meter.fuel = meter.fuel.checked_sub(fuel).ok_or(EvalError::Fuel)?;
    METER.set(meter);
    Ok(())
}

/// Charges `bytes` of the result; call it before they are created.
pub(crate) fn charge_result(bytes: usize) -> Result<(), EvalError> {
    let mut meter = METER.get();
    meter.result = meter.result.checked_sub(bytes).ok_or(EvalError::TooLarge)?;
    METER.set(meter);
    Ok(())
}

pub(crate) fn too_large() -> Error {
    METER.set(Meter { hit: Some(Limit::Bytes), ..METER.get() });
    failed("too large")
}

pub(crate) fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Converts an error of minijinja.
pub(crate) fn eval_error(error: &Error) -> EvalError {
    match (METER.get().hit, error.kind()) {
        (Some(Limit::Bytes), _) => EvalError::TooLarge,
        (Some(Limit::Steps), _) | (None, ErrorKind::OutOfFuel) => EvalError::Fuel,
        (None, kind) => EvalError::Failed(error.detail().map_or_else(|| kind.to_string(), str::to_owned)),
    }
}

/// Writer that charges text as it grows.
pub(crate) struct Charged<W>(pub(crate) W);

impl<W: Write> Write for Charged<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        charge(text.len()).map_err(|_| fmt::Error)?;
        self.0.write_str(text)
    }
}

/// Returns the size of a value's text without creating the text. Text beyond `BYTES_MAX` is an error.
pub(crate) fn text_size(value: &Jinja) -> Result<TextSize, Error> {
    let mut size = TextSize::default();
    let (counted, bytes_per_step) = match value.as_str() {
        Some(text) => (size.write_str(text), 64),
        None => (write!(size, "{value}"), 8),
    };
    counted.map_err(|_| too_large())?;
    step(1 + size.len / bytes_per_step)?;
    Ok(size)
}

#[derive(Default)]
pub(crate) struct TextSize {
    pub(crate) len: usize,
    /// Number of characters that JSON and HTML write as up to six.
    pub(crate) escaped: usize,
}

impl Write for TextSize {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.len += text.len();
        self.escaped += text.bytes().filter(|byte| *byte < b' ' || b"<>&\"'/\\\x7f".contains(byte)).count();
        if self.len > BYTES_MAX { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Size of a value including everything in it.
#[derive(Default)]
pub(crate) struct Weight {
    pub(crate) nodes: usize,
    pub(crate) depth: usize,
    pub(crate) text: usize,
}

/// Visits all parts of a value, one step each. It fails if the value is nested too deep to be formatted or compared.
pub(crate) fn weigh(value: &Jinja) -> Result<Weight, Error> {
    let mut weight = Weight::default();
    walk(value, 1, &mut weight)?;
    Ok(weight)
}

fn walk(value: &Jinja, depth: usize, weight: &mut Weight) -> Result<(), Error> {
    let text = value.as_str().map_or(0, str::len);
    weight.nodes += 1;
    weight.text += text;
    step(1 + text / 64)?;
    let Some(object) = value.as_object() else { return Ok(()) };
    if depth > DEPTH_MAX {
        return Err(failed(format!("lists and objects can be nested at most {DEPTH_MAX} deep")));
    }
    weight.depth = weight.depth.max(depth);
    if value.kind() == ValueKind::Map {
        for (key, item) in object.try_iter_pairs().into_iter().flatten() {
            walk(&key, depth + 1, weight)?;
            walk(&item, depth + 1, weight)?;
        }
    } else {
        for item in object.try_iter().into_iter().flatten() {
            walk(&item, depth + 1, weight)?;
        }
    }
    Ok(())
}
