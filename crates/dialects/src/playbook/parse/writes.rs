//! Parses assignments to the context and to the iteration: `set_ctx`, `set_iter`, and `set`, whose keys name the scope.

use super::present;
use crate::document::{Entry, Node};
use crate::playbook::model::Tree;
use crate::read::Reader;

/// Scope of a key of `set`.
enum Target {
    Ctx,
    Iter,
}

/// Fields for the context, and for the iteration.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub(super) ctx: Tree,
    pub(super) iter: Tree,
}

/// Writes of a rule.
pub(super) fn of_rule(then: &Node, reader: &mut Reader<'_, '_>) -> Writes {
    let (ctx, iter) = split(then, reader);
    Writes { ctx: reader.fields(&ctx), iter: reader.fields(&iter) }
}

/// Writes of a step, which has only a context to write to.
pub(super) fn of_step(step: &Node, reader: &mut Reader<'_, '_>) -> Tree {
    let (ctx, iter) = split(step, reader);
    for entry in iter {
        let hint = "a step writes to the context; the iteration is written by rules of tasks".to_owned();
        reader.error("E0120", &entry.at, format!("a step cannot set `iter.{}`", entry.key), hint);
    }
    reader.fields(&ctx)
}

fn split(node: &Node, reader: &mut Reader<'_, '_>) -> (Vec<Entry>, Vec<Entry>) {
    let (mut ctx, mut iter) = (Vec::new(), Vec::new());
    for (name, default) in [("set_ctx", Target::Ctx), ("set_iter", Target::Iter), ("set", Target::Ctx)] {
        let Some(fields) = present(node, name) else { continue };
        for entry in reader.map(fields, &format!("`{name}`")).unwrap_or_default() {
            let (target, key) = match entry.key.split_once('.') {
                Some(("ctx", key)) => (&Target::Ctx, key),
                Some(("iter", key)) => (&Target::Iter, key),
                _ => (&default, entry.key.as_str()),
            };
            if key.is_empty() || key.contains('.') {
                let hint =
                    "name a scope and one key: `ctx.total`; a part of a value is set with the whole value";
                reader.error("E0120", &entry.at, format!("`{}` cannot be set", entry.key), hint.to_owned());
                continue;
            }
            let written = match target {
                Target::Ctx => &mut ctx,
                Target::Iter => &mut iter,
            };
            add(written, Entry { key: key.to_owned(), ..entry.clone() }, reader);
        }
    }
    (ctx, iter)
}

fn add(written: &mut Vec<Entry>, entry: Entry, reader: &mut Reader<'_, '_>) {
    if written.iter().any(|earlier| earlier.key == entry.key) {
        let hint = "keep one of them".to_owned();
        reader.error("E0120", &entry.at, format!("`{}` is set twice", entry.key), hint);
    } else {
        written.push(entry);
    }
}
