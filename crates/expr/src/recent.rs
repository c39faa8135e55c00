//! Cache of compiled programs. minijinja takes 16 KiB for the smallest program, so a definition with ten thousand
//! templates would hold 160 MB if each kept its own. An evicted program is compiled again.

use crate::EvalError;
use crate::builtins::builtins;
use crate::limits::eval_error;
use minijinja::{Environment, Error, Expression};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum memory of all cached programs; about four thousand small ones.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Memory of the smallest program.
const PROGRAM_BYTES: usize = 16 << 10;

/// Memory of a program for each byte of its text, measured with lists and sums.
const BYTES_PER_BYTE: usize = 64;

/// Name of a text in its environment.
pub(crate) const NAME: &str = "text";

/// Kind of a program's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// A value of any type.
    Expression,
    Text,
}

pub(crate) enum Code {
    Expression(Expression<'static, 'static>),
    /// minijinja owns a template's source only inside an environment, so each has its own; filters and functions are
    /// shared.
    Text(Box<Environment<'static>>),
}

pub(crate) fn compile(form: Form, printed: &str) -> Result<Code, Error> {
    let env = &builtins().env;
    Ok(match form {
        Form::Expression => Code::Expression(env.compile_expression_owned(printed.to_owned())?),
        Form::Text => {
            let mut env = env.clone();
            env.add_template_owned(NAME, printed.to_owned())?;
            Code::Text(Box::new(env))
        }
    })
}

/// Returns the compiled program of a text that has been compiled before.
pub(crate) fn get_compiled(form: Form, printed: &Arc<str>) -> Result<Arc<Code>, EvalError> {
    if let Some(code) = lock().programs_of(form).get(printed) {
        return Ok(code.clone());
    }
    let code = Arc::new(compile(form, printed).map_err(|error| eval_error(&error))?);
    lock().insert(form, printed, &code);
    Ok(code)
}

struct ProgramCache {
    expressions: BTreeMap<Arc<str>, Arc<Code>>,
    texts: BTreeMap<Arc<str>, Arc<Code>>,
    bytes: usize,
}

static CACHE: Mutex<ProgramCache> =
    Mutex::new(ProgramCache { expressions: BTreeMap::new(), texts: BTreeMap::new(), bytes: 0 });

fn lock() -> MutexGuard<'static, ProgramCache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgramCache {
    fn programs_of(&mut self, form: Form) -> &mut BTreeMap<Arc<str>, Arc<Code>> {
        match form {
            Form::Expression => &mut self.expressions,
            Form::Text => &mut self.texts,
        }
    }

    /// Adds a program. When the cache is full, all programs are evicted, which costs no more than compiling them
    /// again. A program that would take a large share of the cache is not added.
    fn insert(&mut self, form: Form, printed: &Arc<str>, code: &Arc<Code>) {
        let bytes = PROGRAM_BYTES + printed.len().saturating_mul(BYTES_PER_BYTE);
        if bytes > CACHE_BYTES_MAX / 8 {
            return;
        }
        if self.bytes + bytes > CACHE_BYTES_MAX {
            self.expressions.clear();
            self.texts.clear();
            self.bytes = 0;
        }
        if self.programs_of(form).insert(printed.clone(), code.clone()).is_none() {
            self.bytes += bytes;
        }
    }
}
