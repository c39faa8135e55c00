//! The schema and its history. Every step is a file that never changes; its digest is recorded when it is applied
//! and compared at every opening.

use super::connect::located;
use super::statements::in_transaction;
use super::tasks::classify_asked;
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};
use std::path::Path;

/// Written into the file's header by the first step.
const APPLICATION_ID: i64 = 0x5744_4c53;

struct Migration {
    number: u32,
    name: &'static str,
    sql: &'static str,
}

/// Numbered from 1 without a gap.
const MIGRATIONS: [Migration; 35] = [
    Migration { number: 1, name: "first", sql: include_str!("schema/0001_first.sql") },
    Migration { number: 2, name: "secrets", sql: include_str!("schema/0002_secrets.sql") },
    Migration { number: 3, name: "tenants", sql: include_str!("schema/0003_tenants.sql") },
    Migration { number: 4, name: "retention", sql: include_str!("schema/0004_retention.sql") },
    Migration { number: 5, name: "webhooks", sql: include_str!("schema/0005_webhooks.sql") },
    Migration { number: 6, name: "access", sql: include_str!("schema/0006_access.sql") },
    Migration { number: 7, name: "memories", sql: include_str!("schema/0007_memories.sql") },
    Migration { number: 8, name: "tenant_slots", sql: include_str!("schema/0008_tenant_slots.sql") },
    Migration { number: 9, name: "keys", sql: include_str!("schema/0009_keys.sql") },
    Migration { number: 10, name: "programs", sql: include_str!("schema/0010_programs.sql") },
    Migration { number: 11, name: "given_up", sql: include_str!("schema/0011_given_up.sql") },
    Migration { number: 12, name: "hooks", sql: include_str!("schema/0012_hooks.sql") },
    Migration { number: 13, name: "usage", sql: include_str!("schema/0013_usage.sql") },
    Migration { number: 14, name: "audit_seals", sql: include_str!("schema/0014_audit_seals.sql") },
    Migration { number: 15, name: "quarantine", sql: include_str!("schema/0015_quarantine.sql") },
    Migration {
        number: 16,
        name: "no_secret_changes",
        sql: include_str!("schema/0016_no_secret_changes.sql"),
    },
    Migration { number: 17, name: "manifests", sql: include_str!("schema/0017_manifests.sql") },
    Migration { number: 18, name: "tenant_limits", sql: include_str!("schema/0018_tenant_limits.sql") },
    Migration { number: 19, name: "people", sql: include_str!("schema/0019_people.sql") },
    Migration { number: 20, name: "workers", sql: include_str!("schema/0020_workers.sql") },
    Migration { number: 21, name: "schedules", sql: include_str!("schema/0021_schedules.sql") },
    Migration { number: 22, name: "registry", sql: include_str!("schema/0022_registry.sql") },
    Migration { number: 23, name: "schedule_links", sql: include_str!("schema/0023_schedule_links.sql") },
    Migration { number: 24, name: "persons", sql: include_str!("schema/0024_persons.sql") },
    Migration { number: 25, name: "sessions", sql: include_str!("schema/0025_sessions.sql") },
    Migration { number: 26, name: "authors", sql: include_str!("schema/0026_authors.sql") },
    Migration { number: 27, name: "runners", sql: include_str!("schema/0027_runners.sql") },
    Migration { number: 28, name: "run_requesters", sql: include_str!("schema/0028_run_requesters.sql") },
    Migration { number: 29, name: "receipts", sql: include_str!("schema/0029_receipts.sql") },
    Migration { number: 30, name: "objects", sql: include_str!("schema/0030_objects.sql") },
    Migration { number: 31, name: "list_columns", sql: include_str!("schema/0031_list_columns.sql") },
    Migration { number: 32, name: "artifact_owners", sql: include_str!("schema/0032_artifact_owners.sql") },
    Migration { number: 33, name: "list_rows", sql: include_str!("schema/0033_list_rows.sql") },
    Migration { number: 34, name: "usage_counted", sql: include_str!("schema/0034_usage_counted.sql") },
    Migration { number: 35, name: "fewer_indexes", sql: include_str!("schema/0035_fewer_indexes.sql") },
];

pub(super) const KNOWN: u32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

const HISTORY: &str =
    "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT, sha256 BLOB) STRICT";

/// Returns the number of steps that were applied to this file, which is only read. A number that this program does not
/// know is refused.
pub(super) fn applied(conn: &Connection, path: &Path) -> StoreResult<u32> {
    let application: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION_ID {
        let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application == 0 && tables == 0 {
            return Ok(0);
        }
        let what = format!("{} is a database of another program", path.display());
        return Err(StoreError::Corrupt(what));
    }
    let recorded = recorded(conn)?;
    let found = recorded.iter().map(|(number, ..)| *number).max().unwrap_or(0);
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.display().to_string(), found, known: KNOWN });
    }
    for ((number, name, sha256), known) in recorded.iter().zip(&MIGRATIONS) {
        if *number != known.number || sha256[..] != digest(known)[..] {
            return Err(StoreError::Corrupt(format!(
                "{}: step {number} (`{name}`) of its schema is not the one this program knows: the checksum \
                 differs, so it was written by another build; use that one",
                path.display()
            )));
        }
    }
    Ok(found)
}

/// Applies missing steps as one transaction: a store has the whole schema or is unchanged.
pub(super) fn migrate(conn: &Connection, path: &Path) -> StoreResult<()> {
    if applied(conn, path)? >= KNOWN {
        return Ok(());
    }
    // Another process may have been faster, so the number is read again when no other process writes.
    in_transaction(conn, || {
        applied(conn, path).and_then(|done| (done..KNOWN).try_for_each(|done| apply_next(conn, done)))
    })
    .map_err(located(path.display()))
}

pub(super) fn apply_next(conn: &Connection, done: u32) -> StoreResult<()> {
    let Some(next) = MIGRATIONS.iter().find(|step| step.number == done + 1) else { return Ok(()) };
    conn.execute_batch(HISTORY)?;
    conn.execute_batch(next.sql)?;
    // SQL cannot read the states of step-runs.
    if next.name == "people" {
        classify_asked(conn)?;
    }
    let row = params![next.number, next.name, &digest(next)[..]];
    conn.execute("INSERT INTO migrations (number, name, sha256) VALUES (?1, ?2, ?3)", row)?;
    Ok(())
}

fn recorded(conn: &Connection) -> StoreResult<Vec<(u32, String, Vec<u8>)>> {
    let mut statement = conn.prepare("SELECT number, name, sha256 FROM migrations ORDER BY number")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn digest(step: &Migration) -> [u8; 32] {
    Sha256::digest(step.sql.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_a_gap() {
        assert!(MIGRATIONS.iter().map(|step| step.number).eq(1..=KNOWN));
    }

    /// A released step never changes; what must change becomes the next step.
    #[test]
    fn released_steps_are_as_they_were() {
        let hex =
            |step: &Migration| digest(step).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let found: Vec<String> = MIGRATIONS.iter().map(hex).collect();
        let expected = [
            "713dc6772f61770273697c950fbe68dcd0ff03155af748924d127cb4ba77c2bb",
            "654482b450c0eae4a1ce4722bf5bcc1180938195246da5d7bb523cf7c28fc874",
            "e1106019dc0decb054c0365f002262cdb1c18f0c302eda7206014a02e328d23d",
            "5807b84c68f2a5cf5673217a30c9b1911924840599374f74430066b3f85db8a8",
            "a56f250d097e04c2f690f82e0acd016ac659a2e9fba328e6a9f0fa28de33f00d",
            "afcab45a117e742fefa1fac9b71105c4892ae2a5a727fdcdc335775c79604b8f",
            "eb003716c0d2bd4aea0cd449140b7c1a178ae3e69bb822846ce97afaebe05424",
            "3cb9fbdcc9f076e232b14c8da76ec8c9561570888033462932713b9289b0f308",
            "a68c6999c0b1112333b1f9a59c0aa5d2ef34d9a336ded746b00c36b9d6bab502",
            "69fe9d0133a4e628945bb1e5b33fb23c28d2be8880dfd22f92081bc1b2208352",
            "efcbacf597674aaf6338a77543a0a22aa9215acd6b8188da642765bf9cdf385a",
            "a38b7cd1fd0ea68b1eb3cc468453737129b828d1b99d545665f259c70fb31910",
            "b21f684b64c02f55d22e0cd2412fabcae9136f93a2cc5c93405abebdd1c96ea5",
            "a10223f071138444a68676f1770efbe89ded5f0ea24a29c0b5b88b6142d7a50e",
            "03e0e3cdc50efc8e5ae7a870de294c81b88d4b878e73c6381e17da0f927fbc47",
            "9dfdfeab292db6c7975674f91d89c31f402c9c26073bf05fe30795a7d25317ae",
            "cd5b49d6c46a46bc4125dd990a70c1ee0baaf18d47c39affab39a02bb75a11df",
            "b337ae571b5b6efef7517f985b88f20bf75ae97743f4788c0aeea55001fbdd1c",
            "148045d8f56e0758c98c1ca8c615dbe7e80fe7de40064d8dfd51c33f8de05546",
            "440caef10aaffd975407efe4b62228543a4a29ff4f91fb1c3c5a8969c574bf9a",
            "af775e138a20597423d63456bede189365a4b86bb39aa90a971994175bf67042",
            "02f7fb4b4d93273aa890404f03af406b135f1309e64e41974cce6e1b16b285cf",
            "e997c21f6b0eb6573ead7122231089f11a72a4fa35569e972b000ba00904a196",
            "45d2fdda4fb8b0a7551277880da1a86c1043f5747f0abc913e0e6f03eae471da",
            "ef50637869f3ae8c6926ac0fada48cd2f637d71aaf93c4f6cfa4198173945148",
            "3ed57fbab67ddf723f22fcf93a5d2e8b558a5af4bb048364bc98e659bb796d22",
            "2202d9754e52d5dc5f838a6be4e6eba52b803dcff47cc119f6c4d382a3702a61",
            "54552c9116441a18d3080dc96922d4e3df47f2934ca2da9d1dc0d2d90a1926ef",
            "2d32802a2e451ed64a9c4fc3be6c42f943130584bd6095ecff8a939259e3b5b2",
            "8c5e0e96d959d3951c5a7e894b2d5e04faca24a39c4709a32083cf786e629079",
            "9707691757a3ac5a1c64d6a7bde94f204c18682ff26061f340cbd2fd0e56052c",
            "bf78f87ab2f5f9c828d786d3dcc7fc01f86af11d25c60e684b0630b08e97a98e",
            "4ac75b6861b887b5cbf8c58ec23a1322d5540b37044084de59d26a06f832a778",
            "687818d41f2f3a6021fa2751cb7f97b328775ed02770542f3064682fffed00ab",
            "aeaa8374010097d68d93b7748f5f3fc458bad6542a259af72c77bcb761f67407",
        ];
        assert_eq!(found, expected);
    }
}
