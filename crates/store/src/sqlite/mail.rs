//! The inbox: letters on their way to executions, and answers that another process waits for.

use super::columns::{Columns as _, id_bytes, json, limit};
use super::quarantine::is_not_quarantined;
use super::statements::{execute, query_all, query_first};
use crate::commit::{Applied, Mail, MailId};
use crate::rules::{MailEnding, MailFacts, end_mail, may_fetch};
use crate::store::{StoreError, StoreResult, StoredMail};
use rusqlite::{Connection, params};

pub(super) fn accept(conn: &Connection, mail: &Mail) -> StoreResult<MailId> {
    let sql = "INSERT INTO inbox (target, letter, wants_answer, at) VALUES (?1, ?2, ?3, ?4)";
    execute(conn, sql, params![id_bytes(mail.to), json(&mail.letter), mail.answered, mail.at.0])?;
    Ok(MailId(conn.last_insert_rowid()))
}

pub(super) fn find_mail(conn: &Connection, mail: MailId) -> StoreResult<Option<MailFacts>> {
    query_first(conn, "SELECT wants_answer, settled FROM inbox WHERE seq = ?1", [mail.0], |row| {
        Ok(MailFacts { wants_answer: row.get(0)?, settled: row.get(1)? })
    })
}

/// Ends an open letter; `refused` is its answer.
pub(super) fn close(
    conn: &Connection,
    mail: MailId,
    ending: MailEnding,
    refused: Option<&str>,
) -> StoreResult<()> {
    match ending {
        MailEnding::Answer => {
            let sql = "UPDATE inbox SET settled = 1, refused = ?2 WHERE seq = ?1";
            execute(conn, sql, params![mail.0, refused])?;
        }
        MailEnding::Delete => delete(conn, mail)?,
    }
    Ok(())
}

fn delete(conn: &Connection, mail: MailId) -> StoreResult<()> {
    execute(conn, "DELETE FROM inbox WHERE seq = ?1", [mail.0]).map(drop)
}

pub(super) fn settle(conn: &Connection, mail: MailId, refused: Option<&str>) -> StoreResult<Applied> {
    let Some(ending) = end_mail(find_mail(conn, mail)?) else { return Ok(Applied::Duplicate) };
    close(conn, mail, ending, refused)?;
    Ok(Applied::Done)
}

pub(super) fn fetch(conn: &Connection, mail: MailId) -> StoreResult<Applied> {
    if !may_fetch(find_mail(conn, mail)?) {
        return Ok(Applied::Duplicate);
    }
    delete(conn, mail)?;
    Ok(Applied::Done)
}

pub(super) const INBOX: &str = concat!(
    "SELECT seq, target, letter, wants_answer FROM inbox \
     WHERE seq > ?1 AND settled = 0 AND ",
    is_not_quarantined!("target"),
    " ORDER BY seq LIMIT ?2"
);

pub(super) fn inbox(conn: &Connection, after: Option<MailId>, count: usize) -> StoreResult<Vec<StoredMail>> {
    let after = after.map_or(i64::MIN, |mail| mail.0);
    query_all(conn, INBOX, params![after, limit(count)], |row| {
        let to = row.read(1)?;
        let letter = row.json(2, "mail").map_err(|error| error.of_execution(to))?;
        Ok(StoredMail { id: MailId(row.get(0)?), to, letter, answered: row.get(3)? })
    })
}

pub(super) fn answer(conn: &Connection, mail: MailId) -> StoreResult<Option<Result<(), String>>> {
    let sql = "SELECT settled, refused FROM inbox WHERE seq = ?1";
    let found: Option<(bool, Option<String>)> =
        query_first(conn, sql, [mail.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match found {
        Some((false, _)) => Ok(None),
        Some((true, refused)) => Ok(Some(refused.map_or(Ok(()), Err))),
        None => Err(StoreError::Io(format!(
            "mail {} is not in the store: no answer was requested, or it was fetched before",
            mail.0
        ))),
    }
}
