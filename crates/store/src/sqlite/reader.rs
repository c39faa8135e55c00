//! Readers that run concurrently with the writer. Each call is one transaction and sees one moment.

use super::chain::Chain;
use super::columns::{Columns as _, id_bytes};
use super::creation::{ORIGIN, ORIGIN_COLUMNS, read_options, read_origin};
use super::statements::{find_key, query_first};
use super::{artifact_owners, catalog, connect, executions, lists, mail, quarantine, state, timers};
use crate::artifacts::Artifacts;
use crate::codec::assemble;
use crate::commit::{DefinitionId, MailId, Position, Stop};
use crate::origin::Tenant;
use crate::quarantine::Suspect;
use crate::rows::Rows;
use crate::rules::{artifact_keys, load_values};
use crate::server_reader::ServerReader;
use crate::store::{
    DueTimer, JournalPage, ListedExecution, Offer, PageBounds, Query, Reader, StoreError, StoreResult,
    Stored, StoredDefinition, StoredLog, StoredMail, Which,
};
use rusqlite::{Connection, params};
use serde_json::Value;
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
    pub(super) fn open(path: &Path) -> StoreResult<SqliteReader> {
        Ok(SqliteReader {
            conn: connect::open_reader(path)?,
            artifacts: super::artifacts_of(path),
            journal_rows: 0,
        })
    }

    /// Reads artifacts through a handle that can fetch copies.
    #[must_use]
    pub fn with_artifacts(self, artifacts: &Artifacts) -> SqliteReader {
        SqliteReader { artifacts: artifacts.clone(), ..self }
    }

    /// Reads within one transaction, so that `read` sees one moment.
    pub(super) fn at_once<T>(&mut self, read: impl FnOnce(&Connection) -> StoreResult<T>) -> StoreResult<T> {
        let transaction = self.conn.transaction()?;
        let found = read(&transaction)?;
        transaction.finish()?;
        Ok(found)
    }

    /// Returns the tenant of an execution, if that exists, and whether workers outside of the server run it.
    fn find_owner(&mut self, execution: ExecutionId) -> StoreResult<Option<(Tenant, bool)>> {
        let sql = "SELECT tenant, options ->> '$.runner' IS NOT NULL FROM executions WHERE id = ?1";
        query_first(&self.conn, sql, [id_bytes(execution)], |row| Ok((row.read(0)?, row.get(1)?)))
    }

    /// Reads an artifact. If its file is missing, its copy is fetched. A copy that cannot be fetched counts as
    /// missing: that affects only the readers of the value.
    fn read_artifact(&self, owner: &Tenant, key: &str) -> StoreResult<Option<Arc<Value>>> {
        match self.artifacts.value(owner, key)? {
            None if self.artifacts.fetch_missing(owner, key).is_ok() => self.artifacts.value(owner, key),
            found => Ok(found),
        }
    }

    /// Reads rows of one execution, if that exists.
    pub(super) fn of<T>(
        &mut self,
        execution: ExecutionId,
        read: impl FnOnce(Chain<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        self.at_once(|conn| {
            let Some(key) = find_key(conn, execution)? else { return Ok(None) };
            read(Chain { conn, execution, key })
                .map(Some)
                .map_err(|error| error.of_execution(execution))
                .map_err(connect::located(format!("execution {execution}")))
        })
    }
}

/// Returns the error for an execution whose rows disappeared within one read.
pub(super) fn vanished() -> StoreError {
    StoreError::Corrupt("it disappeared while it was read".to_owned())
}

impl ServerReader for SqliteReader {
    fn journal_rows_read(&self) -> u64 {
        self.journal_rows
    }
}

impl Reader for SqliteReader {
    fn load(&mut self, execution: ExecutionId) -> StoreResult<Option<Stored>> {
        self.of(execution, |Chain { conn, key, .. }| {
            let (head, ctx) = (state::read_head(conn, key)?, state::read_context(conn, key)?);
            let (runs, parts) = (state::read_runs(conn, key)?, state::read_parts(conn, key)?);
            let sql = format!(
                "SELECT {ORIGIN}, e.inputs, e.net FROM executions e LEFT JOIN workflows w ON w.key = e.workflow \
                 WHERE e.key = ?1"
            );
            let found = query_first(conn, &sql, [key], |row| {
                let inputs = Arc::new(row.json(ORIGIN_COLUMNS, "its list of inputs")?);
                let net = row.read(ORIGIN_COLUMNS + 1)?;
                Ok(Stored {
                    state: assemble(execution, net, inputs, &head, ctx.as_deref(), &runs, &parts)?,
                    origin: Arc::new(read_origin(row, read_options(row)?)?),
                })
            })?;
            found.ok_or_else(vanished)
        })
    }

    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> StoreResult<JournalPage> {
        let page = self.of(execution, |chain| chain.read_page(from, bounds))?.unwrap_or_default();
        self.journal_rows += page.rows.len() as u64;
        Ok(page)
    }

    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> StoreResult<Values> {
        let mut found = self.of(execution, |chain| load_values(&chain, needs))?.unwrap_or_default();
        let mut keys = artifact_keys(needs).peekable();
        let owner = if keys.peek().is_some() { self.find_owner(execution)? } else { None };
        for key in keys {
            let value = match &owner {
                // A worker outside of the server may have made the reference up.
                Some((_, true)) if !artifact_owners::owns(&self.conn, execution, key)? => None,
                Some((owner, _)) => self.read_artifact(owner, key)?,
                None => None,
            };
            found.artifacts.insert(key.clone(), value);
        }
        Ok(found)
    }

    fn net(&mut self, digest: NetDigest) -> StoreResult<Option<Net>> {
        let sql = "SELECT spec FROM nets WHERE digest = ?1";
        let spec: Option<NetSpec> = query_first(&self.conn, sql, [digest.0], |row| row.json(0, "a net"))?;
        let Some(spec) = spec else { return Ok(None) };
        let net = Net::new(spec)
            .map_err(|error| StoreError::Corrupt(format!("a stored net is refused: {error}")))?;
        if net.digest() != digest {
            return Err(StoreError::Corrupt("a stored net is not the one its digest names".to_owned()));
        }
        Ok(Some(net))
    }

    fn due(&mut self, after: Option<&DueTimer>, until: Millis, limit: usize) -> StoreResult<Vec<DueTimer>> {
        self.at_once(|conn| timers::due(conn, after, until, limit))
    }

    fn offers(&mut self, after: Option<(ExecutionId, RunId)>, limit: usize) -> StoreResult<Vec<Offer>> {
        self.at_once(|conn| lists::offers(conn, after, limit))
    }

    fn offers_of(&mut self, execution: ExecutionId, after: RunId, limit: usize) -> StoreResult<Vec<Offer>> {
        self.at_once(|conn| lists::offers_of(conn, execution, after, limit))
    }

    fn unfinished(&mut self, limit: usize) -> StoreResult<Vec<ExecutionId>> {
        self.at_once(|conn| lists::unfinished(conn, limit))
    }

    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> StoreResult<Vec<Stop>> {
        self.at_once(|conn| lists::stops(conn, after, limit))
    }

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> StoreResult<Vec<StoredMail>> {
        mail::inbox(&self.conn, after, limit)
    }

    fn answer(&mut self, mail: MailId) -> StoreResult<Option<Result<(), String>>> {
        mail::answer(&self.conn, mail)
    }

    fn list(&mut self, query: &Query) -> StoreResult<Vec<ListedExecution>> {
        self.at_once(|conn| executions::list(conn, query))
    }

    fn definition(&mut self, id: DefinitionId) -> StoreResult<Option<StoredDefinition>> {
        catalog::find_definition(&self.conn, "d.id = ?1", params![id.0])
    }

    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> StoreResult<Option<StoredDefinition>> {
        self.at_once(|conn| {
            let Some(workflow) = catalog::find_workflow(conn, tenant, which)? else { return Ok(None) };
            catalog::find_version(conn, workflow, version)
        })
    }

    fn logs(&mut self, execution: ExecutionId, after: Position, limit: usize) -> StoreResult<Vec<StoredLog>> {
        self.at_once(|conn| lists::logs(conn, execution, after, limit))
    }

    fn logs_before(
        &mut self,
        execution: ExecutionId,
        before: Position,
        limit: usize,
    ) -> StoreResult<Vec<StoredLog>> {
        self.at_once(|conn| lists::logs_before(conn, execution, before, limit))
    }

    fn run_logs(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        after: Position,
        limit: usize,
    ) -> StoreResult<Vec<StoredLog>> {
        self.at_once(|conn| lists::run_logs(conn, execution, run, after, limit))
    }

    fn suspect(&mut self, execution: ExecutionId) -> StoreResult<Option<Suspect>> {
        self.at_once(|conn| quarantine::find_suspect(conn, execution))
    }

    fn open_executions(&mut self, tenant: &Tenant, bound: usize) -> StoreResult<usize> {
        executions::count_open(&self.conn, tenant, bound)
    }

    fn rows(&mut self, execution: ExecutionId) -> StoreResult<Option<Rows>> {
        self.of(execution, |Chain { conn, key, .. }| state::read_rows(conn, key))
    }
}
