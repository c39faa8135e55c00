//! Reads beside the writer. Each call is one transaction, so what it sees belongs together.

use super::chain::Chain;
use super::columns::{digest, id, parsed, tenant, workflow};
use super::connect;
use super::lists::{self, key_of};
use super::{catalog, due, executions, quarantine, state, values};
use crate::artifacts::Artifacts;
use crate::codec::assemble;
use crate::commit::{DefinitionId, MailId, Position, Stop};
use crate::origin::Tenant;
use crate::quarantine::Suspect;
use crate::rows::Rows;
use crate::store::{
    DueTimer, JournalPage, JournalRow, Listed, Offer, PageBounds, Query, Reader, StoreError, Stored,
    StoredDefinition, StoredLog, StoredMail, Which,
};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Millis, Need, Net, NetDigest, NetSpec, RunId, Values};

#[derive(Debug)]
pub struct SqliteReader {
    pub(super) conn: Connection,
    artifacts: Artifacts,
    journal_rows: u64,
}

impl SqliteReader {
    pub(super) fn open(path: &Path) -> Result<SqliteReader, StoreError> {
        Ok(SqliteReader { conn: connect::reading(path)?, artifacts: super::beside(path), journal_rows: 0 })
    }

    /// Rows of journals that it has read since it was opened: what whoever asks has cost.
    #[must_use]
    pub fn journal_rows_read(&self) -> u64 {
        self.journal_rows
    }

    /// Everything `read` sees is of one moment.
    pub(super) fn at_once<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = self.conn.transaction()?;
        let found = read(&transaction)?;
        transaction.finish()?;
        Ok(found)
    }

    /// The tenant of an execution that is there.
    fn owner(&mut self, execution: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        let found = self.of(execution, |Chain { conn, key, .. }| {
            let mut statement = conn.prepare_cached("SELECT tenant FROM executions WHERE key = ?1")?;
            Ok(statement.query_row([key], |row| row.get::<_, String>(0)).optional()?)
        })?;
        Ok(found.flatten().map(|id| tenant(&id)))
    }

    /// Of an execution that is there.
    pub(super) fn of<T>(
        &mut self,
        execution: ExecutionId,
        read: impl FnOnce(Chain<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.at_once(|conn| {
            let Some(key) = key_of(conn, execution)? else { return Ok(None) };
            read(Chain { conn, execution, key })
                .map(Some)
                .map_err(|error| error.of_execution(execution))
                .map_err(super::errors::at(format!("execution {execution}")))
        })
    }
}

impl Reader for SqliteReader {
    fn load(&mut self, execution: ExecutionId) -> Result<Option<Stored>, StoreError> {
        self.of(execution, |Chain { conn, key, .. }| {
            let (head, ctx) = (state::head(conn, key)?, state::ctx(conn, key)?);
            let (runs, parts) = (state::runs(conn, key)?, state::parts(conn, key)?);
            let sql = "SELECT e.inputs, e.net, e.definition, e.trigger, e.tenant, e.options, w.id, e.parent \
                       FROM executions e LEFT JOIN workflows w ON w.key = e.workflow WHERE e.key = ?1";
            let found = lists::all(conn, sql, [key], |row| {
                let inputs = Arc::new(parsed(&row.get::<_, String>(0)?, "its list of inputs")?);
                let net = digest(row.get(1)?);
                Ok(Stored {
                    state: assemble(execution, net, inputs, &head, ctx.as_deref(), &runs, &parts)?,
                    definition: row.get::<_, Option<i64>>(2)?.map(DefinitionId),
                    trigger: row.get(3)?,
                    tenant: tenant(row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?),
                    options: Arc::new(parsed(&row.get::<_, String>(5)?, "its options")?),
                    workflow: row.get::<_, Option<_>>(6)?.map(workflow),
                    parent: row.get::<_, Option<_>>(7)?.map(id),
                })
            })?;
            found
                .into_iter()
                .next()
                .ok_or_else(|| StoreError::Corrupt("it went while it was read".to_owned()))
        })
    }

    fn journal(
        &mut self,
        execution: ExecutionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let bounds = PageBounds { rows_max: limit, bytes_max: usize::MAX };
        Ok(self.journal_page(execution, from, bounds)?.rows)
    }

    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> Result<JournalPage, StoreError> {
        let page = self.of(execution, |chain| chain.rows(from, bounds))?.unwrap_or_default();
        self.journal_rows += page.rows.len() as u64;
        Ok(page)
    }

    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> Result<Values, StoreError> {
        let mut found = self.of(execution, |chain| values::values(chain, needs))?.unwrap_or_default();
        let keys = needs.iter().filter_map(|need| match need {
            Need::Artifact(key) => Some(key),
            _ => None,
        });
        let mut keys = keys.peekable();
        // An artifact is looked for among those of the execution's own tenant, whatever names it.
        let owner = if keys.peek().is_some() { self.owner(execution)? } else { None };
        for key in keys {
            let value = owner.as_ref().map(|owner| self.artifacts.value(owner, key)).transpose()?;
            found.artifacts.insert(key.clone(), value.flatten());
        }
        Ok(found)
    }

    fn net(&mut self, digest: NetDigest) -> Result<Option<Net>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT spec FROM nets WHERE digest = ?1")?;
        let spec: Option<String> = statement.query_row([digest.0], |row| row.get(0)).optional()?;
        let Some(spec) = spec else { return Ok(None) };
        let spec: NetSpec = parsed(&spec, "a net")?;
        let net = Net::new(spec)
            .map_err(|error| StoreError::Corrupt(format!("a stored net is refused: {error}")))?;
        if net.digest() != digest {
            return Err(StoreError::Corrupt("a stored net is not the one its digest names".to_owned()));
        }
        Ok(Some(net))
    }

    fn due(
        &mut self,
        after: Option<&DueTimer>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<DueTimer>, StoreError> {
        self.at_once(|conn| due::due(conn, after, until, limit))
    }

    fn offers(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        self.at_once(|conn| lists::offers(conn, after, limit))
    }

    fn offers_of(
        &mut self,
        execution: ExecutionId,
        after: RunId,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        self.at_once(|conn| lists::offers_of(conn, execution, after, limit))
    }

    fn unfinished(&mut self, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.at_once(|conn| lists::unfinished(conn, limit))
    }

    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> Result<Vec<Stop>, StoreError> {
        self.at_once(|conn| lists::stops(conn, after, limit))
    }

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> Result<Vec<StoredMail>, StoreError> {
        lists::inbox(&self.conn, after, limit)
    }

    fn answer(&mut self, mail: MailId) -> Result<Option<Result<(), String>>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT settled, refused FROM inbox WHERE seq = ?1")?;
        let found: Option<(bool, Option<String>)> =
            statement.query_row([mail.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match found {
            Some((false, _)) => Ok(None),
            Some((true, refused)) => Ok(Some(refused.map_or(Ok(()), Err))),
            None => Err(StoreError::Io(format!(
                "mail {} is not in the store: nobody waited for its answer, or it was fetched before",
                mail.0
            ))),
        }
    }

    fn list(&mut self, query: &Query) -> Result<Vec<Listed>, StoreError> {
        self.at_once(|conn| executions::list(conn, query))
    }

    fn definition(&mut self, id: DefinitionId) -> Result<Option<StoredDefinition>, StoreError> {
        catalog::definition(&self.conn, "d.id = ?1", params![id.0])
    }

    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> Result<Option<StoredDefinition>, StoreError> {
        self.at_once(|conn| {
            let Some(workflow) = catalog::standing(conn, tenant, which)? else { return Ok(None) };
            catalog::version(conn, workflow, version)
        })
    }

    fn logs(
        &mut self,
        execution: ExecutionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        self.at_once(|conn| lists::logs(conn, execution, after, limit))
    }

    fn suspect(&mut self, execution: ExecutionId) -> Result<Option<Suspect>, StoreError> {
        self.at_once(|conn| quarantine::suspect(conn, execution))
    }

    fn open_executions(&mut self, tenant: &Tenant, bound: usize) -> Result<usize, StoreError> {
        executions::count_open(&self.conn, tenant, bound)
    }

    fn rows(&mut self, execution: ExecutionId) -> Result<Option<Rows>, StoreError> {
        self.of(execution, |Chain { conn, key, .. }| state::rows(conn, key))
    }
}
