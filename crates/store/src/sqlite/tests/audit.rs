//! Tests that a change and its audit row are written by one transaction: both exist, or neither.

use super::Folder;
use crate::access::{Access as _, Audit, AuditQuery, Author, StoredTenant, TenantLimits};
use crate::commit::{Definition, Target, WorkflowId, Write};
use crate::conformance::world::{World, chain, definition};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::secrets::{Secrets as _, StoredSecret};
use crate::sqlite::Sqlite;
use crate::store::{Store as _, StoreResult};
use serde_json::json;
use windlass_kernel::{Cancel, Input, Millis};

fn audit(action: &str) -> Audit {
    Audit {
        tenant: Tenant::default(),
        at: Millis(7),
        actor: "user_1".to_owned(),
        role: "admin".to_owned(),
        action: action.to_owned(),
        target: "it".to_owned(),
        details: json!({}),
    }
}

fn actions(folder: &Folder) -> Vec<String> {
    let (tenant, limit) = (Tenant::default(), 99);
    let (actor, action, target, since, until, before) = (None, None, None, None, None, None);
    let query = AuditQuery { tenant, actor, action, target, since, until, before, limit };
    let rows = Sqlite::read_only(&folder.path()).unwrap().audit(&query).unwrap();
    rows.into_iter().map(|row| row.audit.action).collect()
}

fn defined(target: Target, source: &str) -> Write {
    let author = Some(Author { actor: "user_1".to_owned(), role: "admin".to_owned() });
    Write::Define(Box::new(Definition { target, author, ..definition("d", source, &chain(1)) }))
}

fn kept(entry: Entry, action: &str) -> Write {
    Write::Entry(Box::new(entry.audited(audit(action))))
}

fn tenant() -> Entry {
    let (id, at) = (Tenant::new("t"), Millis(1));
    let (name, limits) = ("T".to_owned(), TenantLimits::default());
    Entry::Tenant(Box::new(StoredTenant {
        id,
        name,
        limits,
        programs: false,
        created_at: at,
        updated_at: at,
    }))
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

/// A change of each kind, on a store where it can be made.
type Change = fn(&Folder) -> StoreResult<()>;

/// Name, the change, and the rows that it adds or removes.
const CHANGES: [(&str, Change, &str); 5] = [
    (
        "workflow.create",
        |folder| folder.open().write(&[defined(Target::New(WorkflowId(9)), "new")]).map(drop),
        "SELECT count(*) FROM definitions",
    ),
    (
        "tenant.create",
        |folder| folder.open().write(&[kept(tenant(), "tenant.create")]).map(drop),
        "SELECT count(*) FROM tenants",
    ),
    (
        "execution.cancel",
        |folder| {
            let (mut world, created) = World::create(&chain(1), 1);
            let mut cancel = world.give(&Input::Cancel(Cancel::default()));
            cancel.audits = vec![audit("execution.cancel")];
            let commits = [created, cancel].map(|commit| Write::Commit(Box::new(commit)));
            folder.open().write(&commits).map(drop)
        },
        "SELECT count(*) FROM journal",
    ),
    (
        "secret.set",
        |folder| {
            let mut secrets = Sqlite::secrets(&folder.path())?;
            secrets.put(&secret(2), Some(&audit("secret.set"))).map(|put| assert!(put))
        },
        "SELECT sum(version) FROM secrets",
    ),
    (
        "secret.delete",
        |folder| {
            let mut secrets = Sqlite::secrets(&folder.path())?;
            let deleted = secrets.delete("default", "api", Some(&audit("secret.delete")));
            deleted.map(|deleted| assert!(deleted))
        },
        "SELECT count(*) FROM secrets",
    ),
];

fn place() -> Folder {
    let folder = Folder::new();
    drop(folder.open());
    Sqlite::secrets(&folder.path()).unwrap().put(&secret(1), None).unwrap();
    folder
}

fn count(folder: &Folder, sql: &str) -> Option<i64> {
    folder.raw().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_change_and_who_made_it_are_written_together() {
    for (action, change, rows) in CHANGES {
        let folder = place();
        let before = count(&folder, rows);
        change(&folder).unwrap();
        assert_eq!(actions(&folder), [action]);
        assert_ne!(count(&folder, rows), before, "{action}");
    }
}

/// A failure between the two, here of the audit row, also undoes the change.
#[test]
fn without_the_row_about_it_there_is_no_change() {
    for (action, change, rows) in CHANGES {
        let folder = place();
        let before = count(&folder, rows);
        let fault = "CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'a fault'); END";
        folder.raw().execute_batch(fault).unwrap();
        assert!(change(&folder).is_err(), "{action}");
        assert_eq!(count(&folder, rows), before, "{action}");
        folder.raw().execute_batch("DROP TRIGGER fault").unwrap();
        change(&folder).unwrap();
        assert_eq!(actions(&folder), [action]);
    }
}
