//! Actions and routing targets: which documents become revisions, and what a changed target keeps.

use crate::commit::Applied;
use crate::registry::{ACTION_REVISIONS_MAX, ACTIONS_MAX, ActionId, RoutingTarget, TARGETS_MAX, TargetPoll};

/// The action that a document is for, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAction {
    pub id: ActionId,
    pub revision: u32,
    /// The newest revision has the same document.
    pub is_same: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionVerdict {
    Answer(Applied),
    /// Creates the action with its first revision.
    Create,
    Revise {
        action: ActionId,
        revision: u32,
    },
}

/// Decides what a document does to the actions of its tenant. An old document that returns after another one is a new
/// revision: the newest revision is always what was stored last.
#[must_use]
pub fn judge_action(known: Option<&KnownAction>, actions_of_tenant: usize) -> ActionVerdict {
    match known {
        None if actions_of_tenant >= ACTIONS_MAX => ActionVerdict::Answer(Applied::Conflict),
        None => ActionVerdict::Create,
        Some(known) if known.is_same => ActionVerdict::Answer(Applied::Duplicate),
        Some(known) if known.revision >= ACTION_REVISIONS_MAX => ActionVerdict::Answer(Applied::Conflict),
        Some(known) => ActionVerdict::Revise { action: known.id, revision: known.revision + 1 },
    }
}

/// Returns the row of a target that is put; None when the tenant has too many of its kind.
#[must_use]
pub fn put_target(
    put: &RoutingTarget,
    known: Option<&RoutingTarget>,
    targets_of_kind: usize,
) -> Option<RoutingTarget> {
    let Some(known) = known else { return (targets_of_kind < TARGETS_MAX).then(|| put.clone()) };
    Some(RoutingTarget {
        created_at: known.created_at,
        routing_key: put.routing_key.clone().or_else(|| known.routing_key.clone()),
        ..put.clone()
    })
}

/// Returns the row of a target after a poll; None when another URL is polled by now.
#[must_use]
pub fn apply_poll(known: &RoutingTarget, poll: &TargetPoll) -> Option<RoutingTarget> {
    if known.ready_url.as_deref() != Some(poll.ready_url.as_str()) {
        return None;
    }
    let routing_key = poll.routing_key.clone().or_else(|| known.routing_key.clone());
    let is_changed = (known.ready, &known.routing_key) != (poll.ready, &routing_key);
    Some(RoutingTarget {
        ready: poll.ready,
        routing_key,
        reason: poll.reason.clone(),
        polled_at: Some(poll.at),
        updated_at: if is_changed { poll.at } else { known.updated_at },
        ..known.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Tenant;
    use crate::registry::TargetKind;
    use windlass_kernel::Millis;

    #[test]
    fn only_another_document_is_a_revision() {
        let known = |revision, is_same| Some(KnownAction { id: ActionId(1), revision, is_same });
        let revise = |revision| ActionVerdict::Revise { action: ActionId(1), revision };
        let cases = [
            (None, 0, ActionVerdict::Create),
            (None, ACTIONS_MAX, ActionVerdict::Answer(Applied::Conflict)),
            (known(4, false), ACTIONS_MAX, revise(5)),
            (known(4, true), 1, ActionVerdict::Answer(Applied::Duplicate)),
            (known(ACTION_REVISIONS_MAX, true), 1, ActionVerdict::Answer(Applied::Duplicate)),
            (known(ACTION_REVISIONS_MAX, false), 1, ActionVerdict::Answer(Applied::Conflict)),
        ];
        for (known, count, expected) in cases {
            assert_eq!(judge_action(known.as_ref(), count), expected, "{known:?} {count}");
        }
    }

    fn target(routing_key: Option<&str>, at: i64) -> RoutingTarget {
        RoutingTarget {
            tenant: Tenant::new("a"),
            kind: TargetKind::Sandbox,
            name: "s".to_owned(),
            cluster: None,
            routing_key: routing_key.map(str::to_owned),
            ready: false,
            ready_url: Some("http://ready".to_owned()),
            reason: None,
            polled_at: None,
            created_at: Millis(at),
            updated_at: Millis(at),
        }
    }

    #[test]
    fn a_changed_target_keeps_its_key_unless_it_gets_another() {
        let known = target(Some("k"), 1);
        let put = |key| put_target(&target(key, 2), Some(&known), TARGETS_MAX).expect("it is known");
        let kept = put(None);
        assert_eq!(
            (kept.routing_key.as_deref(), kept.created_at, kept.updated_at),
            (Some("k"), Millis(1), Millis(2))
        );
        assert_eq!(put(Some("l")).routing_key.as_deref(), Some("l"));
        assert_eq!(put_target(&known, None, TARGETS_MAX), None);
        assert_eq!(put_target(&known, None, TARGETS_MAX - 1), Some(known.clone()));
    }

    #[test]
    fn a_poll_of_an_earlier_url_changes_nothing() {
        let known = target(Some("k"), 1);
        let poll = |url: &str, ready| TargetPoll {
            tenant: Tenant::new("a"),
            kind: TargetKind::Sandbox,
            name: "s".to_owned(),
            ready_url: url.to_owned(),
            ready,
            routing_key: None,
            reason: None,
            at: Millis(5),
        };
        assert_eq!(apply_poll(&known, &poll("http://other", true)), None);
        let ready = apply_poll(&known, &poll("http://ready", true)).expect("it is the URL");
        assert_eq!((ready.ready, ready.updated_at, ready.polled_at), (true, Millis(5), Some(Millis(5))));
        let same = apply_poll(&known, &poll("http://ready", false)).expect("it is the URL");
        assert_eq!((same.ready, same.updated_at, same.polled_at), (false, Millis(1), Some(Millis(5))));
    }
}
