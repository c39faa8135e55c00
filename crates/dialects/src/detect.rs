//! Which dialect a document is written in. Its shape says so; no flag is needed.

use crate::diagnostic::Problems;
use crate::document::Node;
use serde::Serialize;
use windlass_views::DialectView;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Plan,
    Playbook,
    Workflow,
    Actions,
}

impl Dialect {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Plan => "plan",
            Dialect::Playbook => "playbook",
            Dialect::Workflow => "workflow",
            Dialect::Actions => "actions",
        }
    }

    /// Builds the view of an execution in the words of this dialect.
    #[must_use]
    pub fn view(self) -> &'static DialectView {
        match self {
            Dialect::Playbook => &crate::playbook::VIEW,
            Dialect::Workflow => &crate::workflow::VIEW,
            Dialect::Plan => const { &DialectView::empty("plan") },
            Dialect::Actions => const { &DialectView::empty("actions") },
        }
    }

    #[must_use]
    pub fn of_name(name: &str) -> Option<Dialect> {
        let all = [Dialect::Plan, Dialect::Playbook, Dialect::Workflow, Dialect::Actions];
        all.into_iter().find(|dialect| dialect.name() == name)
    }
}

pub(crate) fn detect(root: &Node, problems: &mut Problems) -> Option<Dialect> {
    let found = shape(root);
    match found {
        Some(Dialect::Playbook | Dialect::Workflow) => {}
        Some(dialect) => {
            let message = format!(
                "this is a definition of the dialect `{}`, which is not supported yet",
                dialect.name()
            );
            problems.add("E0006", &(root.at.start..root.at.start), message, hint());
        }
        None => {
            let message = format!("this is no definition: {} without steps", root.noun());
            problems.add("E0005", &(root.at.start..root.at.start), message, hint());
        }
    }
    found
}

fn hint() -> Option<String> {
    Some(
        "a playbook has a list `workflow` whose entries have a name `step`; a workflow has `nodes` and `edges`"
            .to_owned(),
    )
}

fn shape(root: &Node) -> Option<Dialect> {
    let inner = root.get("spec").filter(|spec| spec.is_map()).unwrap_or(root);
    let has = |key: &str| root.get(key).is_some() || inner.get(key).is_some();
    let is_playbook = |kind: &str| kind.eq_ignore_ascii_case("playbook");
    if root.get("workflow").is_some() || root.get("kind").and_then(Node::text).is_some_and(is_playbook) {
        Some(Dialect::Playbook)
    } else if has("nodes") {
        Some(Dialect::Workflow)
    } else if has("actions") {
        Some(Dialect::Actions)
    } else if has("steps") {
        Some(Dialect::Plan)
    } else {
        None
    }
}
