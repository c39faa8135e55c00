//! Tenants, tokens and the audit log.

use super::world::{World, chain, definition};
use super::{ServerSite, commit, entry, reader, written};
use crate::access::{Access as _, Audit, AuditQuery, Author, StoredTenant, StoredToken, TenantLimits};
use crate::commit::{Applied, Definition, Target, WorkflowId, Write};
use crate::entry::{Entry, WorkflowStatus};
use crate::origin::Tenant;
use crate::secrets::{Secrets as _, StoredSecret};
use crate::store::Store as _;
use serde_json::json;
use windlass_kernel::{Cancel, Input, Millis};

fn tenant(id: &str, name: &str, at: i64) -> StoredTenant {
    let limits = TenantLimits { slots: Some(3), storage: Some(1 << 40), ..TenantLimits::default() };
    let (name, created_at) = (name.to_owned(), Millis(at));
    StoredTenant { id: Tenant::new(id), name, limits, programs: true, created_at, updated_at: created_at }
}

fn token(id: &str, digest: u8) -> StoredToken {
    StoredToken {
        id: id.to_owned(),
        tenant: Tenant::new("a"),
        name: "ci".to_owned(),
        role: "admin".to_owned(),
        roles: vec!["controller".to_owned()],
        group: (digest == 2).then(|| "gpu".to_owned()),
        person: (digest == 2).then(|| "user_1".to_owned()),
        digest: [digest; 32],
        issuer: (digest == 2).then_some([1; 32]),
        created_by: "user_0".to_owned(),
        created_at: Millis(5),
        expires_at: Some(Millis(99)),
        revoked_at: None,
        last_used_at: None,
    }
}

pub fn a_tenant_is_created_and_changed<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let put = |tenant: &StoredTenant| Entry::Tenant(Box::new(tenant.clone()));
    let (first, second) = (tenant("b", "B", 1), tenant("a", "A", 2));
    assert_eq!([entry(&mut store, put(&first)), entry(&mut store, put(&second))], [Applied::Done; 2]);
    let limits = TenantLimits { rate_limit: Some(0), ..TenantLimits::default() };
    let changed = StoredTenant { name: "C".into(), limits, programs: false, ..tenant("b", "C", 9) };
    assert_eq!(entry(&mut store, put(&changed)), Applied::Done);
    drop(store);
    let kept = StoredTenant { created_at: Millis(1), ..changed };
    assert_eq!(reader(&site.open()).tenants(), Ok(vec![kept, second]), "in the order of their creation");
}

pub fn a_token_is_stored_used_revoked_once_and_deleted<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let put = |token: StoredToken| Entry::Token(Box::new(token));
    let revoke =
        |of: &str, id: &str| Entry::TokenRevoked { tenant: Tenant::new(of), id: id.into(), at: Millis(8) };
    let cases = [
        (put(token("user_1", 1)), Applied::Done),
        (put(token("user_1", 2)), Applied::Duplicate),
        (put(token("user_2", 1)), Applied::Duplicate),
        (put(token("user_2", 2)), Applied::Done),
        (Entry::TokenUsed { id: "user_2".into(), at: Millis(7) }, Applied::Done),
        (revoke("b", "user_1"), Applied::Duplicate),
        (revoke("a", "user_9"), Applied::Duplicate),
        (revoke("a", "user_1"), Applied::Done),
        (revoke("a", "user_1"), Applied::Duplicate),
    ];
    for (change, applied) in cases {
        assert_eq!(entry(&mut store, change.clone()), applied, "{change:?}");
    }
    let revoked = StoredToken { revoked_at: Some(Millis(8)), ..token("user_1", 1) };
    let used = StoredToken { last_used_at: Some(Millis(7)), ..token("user_2", 2) };
    assert_eq!(reader(&store).tokens(), Ok(vec![revoked.clone(), used]));
    let delete = |of: &str| Entry::TokenDeleted { tenant: Tenant::new(of), id: "user_2".into() };
    for (change, applied) in
        [(delete("b"), Applied::Duplicate), (delete("a"), Applied::Done), (delete("a"), Applied::Duplicate)]
    {
        assert_eq!(entry(&mut store, change.clone()), applied, "{change:?}");
    }
    assert_eq!(reader(&store).tokens(), Ok(vec![revoked]));
}

fn audit(action: &str) -> Audit {
    Audit {
        tenant: Tenant::default(),
        at: Millis(7),
        actor: "user_1".to_owned(),
        role: "admin".to_owned(),
        action: action.to_owned(),
        target: "it".to_owned(),
        details: json!({ "n": 1 }),
    }
}

fn query() -> AuditQuery {
    let (actor, action, target, since, until, before) = (None, None, None, None, None, None);
    AuditQuery { tenant: Tenant::default(), actor, action, target, since, until, before, limit: 99 }
}

fn actions<P: ServerSite>(store: &P::Store, query: &AuditQuery) -> Vec<String> {
    let rows = reader(store).audit(query).expect("the audit log");
    rows.into_iter().map(|row| row.audit.action).collect()
}

pub fn the_audit_log_is_read_newest_first_by_its_tenant<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let rows = [
        audit("one"),
        Audit { actor: "user_2".into(), at: Millis(8), ..audit("two") },
        Audit { target: "that".into(), at: Millis(9), ..audit("three") },
        Audit { tenant: Tenant::new("other"), ..audit("other") },
    ];
    for row in &rows {
        assert_eq!(entry(&mut store, Entry::Audit(Box::new(row.clone()))), Applied::Done);
    }
    let found = reader(&store).audit(&query()).expect("the audit log");
    assert_eq!(found.iter().map(|row| &row.audit).collect::<Vec<_>>(), [&rows[2], &rows[1], &rows[0]]);
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (AuditQuery { actor: text("user_2"), ..query() }, vec!["two"]),
        (AuditQuery { action: text("one"), ..query() }, vec!["one"]),
        (AuditQuery { target: text("that"), ..query() }, vec!["three"]),
        (AuditQuery { since: Some(Millis(7)), ..query() }, vec!["three", "two"]),
        (AuditQuery { until: Some(Millis(9)), ..query() }, vec!["two", "one"]),
        (AuditQuery { before: Some(found[0].seq), ..query() }, vec!["two", "one"]),
        (AuditQuery { limit: 1, ..query() }, vec!["three"]),
        (AuditQuery { tenant: Tenant::new("other"), ..query() }, vec!["other"]),
    ];
    for (query, expected) in cases {
        assert_eq!(actions::<P>(&store, &query), expected, "{query:?}");
    }
}

fn defined(target: Target, source: &str) -> Write {
    let author = Some(Author { actor: "user_1".to_owned(), role: "admin".to_owned() });
    Write::Define(Box::new(Definition { target, author, ..definition("d", source, &chain(1)) }))
}

fn secret(version: u32) -> StoredSecret {
    StoredSecret {
        tenant: "default".to_owned(),
        name: "api".to_owned(),
        version,
        key: "k".to_owned(),
        sealed: vec![1],
        created_at: Millis(1),
        updated_at: Millis(1),
    }
}

/// Every kind of change is audited when it takes effect, and only then.
pub fn only_a_change_that_takes_effect_is_audited<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let of = WorkflowId(1);
    let status = |workflow| {
        let status = WorkflowStatus::Paused;
        Entry::WorkflowStatus { tenant: Tenant::default(), workflow, status, at: Millis(3) }
    };
    let audited = |entry: Entry, action| Write::Entry(Box::new(entry.audited(audit(action))));
    let writes = [
        defined(Target::Named(of), "one"),
        defined(Target::Named(of), "one"),
        defined(Target::After(of, Some(7)), "two"),
        defined(Target::After(of, Some(1)), "two"),
        audited(status(WorkflowId(8)), "nothing"),
        audited(status(of), "workflow.status"),
    ];
    let applied = store.write(&writes).expect("a healthy store");
    assert!(matches!(applied[..2], [Applied::Defined(_, 1, _), Applied::Defined(_, 1, _)]), "{applied:?}");
    assert_eq!((applied[2], applied[4], applied[5]), (Applied::Fenced, Applied::Duplicate, Applied::Done));
    let (mut world, created) = World::create(&chain(1), 1);
    let mut cancel = world.give(&Input::Cancel(Cancel::default()));
    cancel.audits = vec![audit("execution.cancel")];
    let stale = cancel.clone();
    written(&mut store, &[commit(created), commit(cancel)]);
    assert_eq!(store.write(&[commit(stale)]), Ok(vec![Applied::Conflict]));
    let mut secrets = site.secrets();
    assert_eq!(secrets.put(&secret(9), Some(&audit("nothing"))), Ok(false));
    assert_eq!(secrets.put(&secret(1), Some(&audit("secret.set"))), Ok(true));
    assert_eq!(secrets.delete("default", "other", Some(&audit("nothing"))), Ok(false));
    assert_eq!(secrets.delete("default", "api", Some(&audit("secret.delete"))), Ok(true));
    let expected = [
        "secret.delete",
        "secret.set",
        "execution.cancel",
        "workflow.status",
        "workflow.change",
        "workflow.create",
    ];
    assert_eq!(actions::<P>(&store, &query()), expected);
}
