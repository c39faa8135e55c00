//! `next` in all its forms: `{spec, arcs}`, a name, a list of names or arcs, one arc.

use super::{present, required};
use crate::document::{Kind, Node};
use crate::playbook::language::{ARC, NEXT, NEXT_SPEC, ROUTER_MODES};
use crate::playbook::model::ArcDef;
use crate::read::{Reader, Unknown};
use windlass_kernel::net::RouterMode;

/// Arcs of other versions of the language write the context.
const ELSEWHERE: [(&str, &str); 2] = [
    ("set", "write the context with `set_ctx` of the step; pass what only the next step needs in `args`"),
    ("set_ctx", "write `set_ctx` in the step; pass what only the next step needs in `args`"),
];

pub(super) type Routes = (RouterMode, Vec<ArcDef>);

pub(super) fn router(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Routes {
    let exclusive = RouterMode::Exclusive;
    let (mode, arcs) = match &node.kind {
        Kind::List(items) => (exclusive, items.iter().filter_map(|item| arc(item, what, reader)).collect()),
        Kind::Map(_) if node.get("step").is_none() => canonical(node, what, reader),
        _ => (exclusive, arc(node, what, reader).into_iter().collect()),
    };
    if mode == exclusive {
        never_taken(&arcs, reader);
    }
    (mode, arcs)
}

fn canonical(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Routes {
    reader.known(node.entries(), "`next`", NEXT, Unknown::Error);
    let mode = present(node, "spec").and_then(|spec| mode(spec, reader)).unwrap_or(RouterMode::Exclusive);
    let items = present(node, "arcs").and_then(|arcs| reader.list(arcs, "`arcs`")).unwrap_or_default();
    (mode, items.iter().filter_map(|item| arc(item, what, reader)).collect())
}

fn mode(spec: &Node, reader: &mut Reader<'_, '_>) -> Option<RouterMode> {
    let entries = reader.map(spec, "`spec` of `next`")?;
    reader.known(entries, "`spec` of `next`", NEXT_SPEC, Unknown::Error);
    reader.choice(present(spec, "mode")?, "router mode", &ROUTER_MODES)
}

fn arc(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<ArcDef> {
    if !node.is_map() {
        let to = reader.name(node, &format!("an arc of {what}"))?;
        return Some(ArcDef { to, guard: None, args: None });
    }
    let entries = reader.elsewhere(node.entries(), "an arc", &ELSEWHERE);
    reader.known(entries, "an arc", ARC, Unknown::Error);
    let to = required(node, "step", "an arc", reader);
    let guard = node.get("when").map(|when| reader.condition(when, "`when` of an arc"));
    let args = reader.aliased(node, &["args", "input"]).filter(|args| !args.is_null());
    if let Some(args) = args {
        reader.map(args, "`args` of an arc")?;
    }
    let args = args.and_then(|args| reader.template(args));
    Some(ArcDef { to: to?, guard: guard.flatten(), args })
}

fn never_taken(arcs: &[ArcDef], reader: &mut Reader<'_, '_>) {
    let always = |arc: &ArcDef| arc.guard.as_ref().is_none_or(|guard| guard.source() == "true");
    let Some(first) = arcs.iter().position(always) else { return };
    for arc in &arcs[first + 1..] {
        let message = format!(
            "the arc to `{}` is never taken: the one to `{}` always matches",
            arc.to.text, arcs[first].to.text
        );
        let hint =
            "add `when` to the earlier arc, or `spec: {mode: inclusive}` to take every arc that matches"
                .to_owned();
        reader.error("W0204", &arc.to.at, message, hint);
    }
}
