//! Executions, wherever they are.

use super::trail::ServerTrail;
use super::{Client, Place};
use crate::commands::graph::Drawn;
use crate::data::Data;
use crate::exit::Usage;
use reqwest::Method;
use serde_json::{Value, json};
use windlass_kernel::ExecutionId;
use windlass_server::evidence::{Evidence, Ledger};
use windlass_server::follow::Follower;
use windlass_server::stories::Stories;
use windlass_server::told::{TellError, Told};
use windlass_server::trail::StoreTrail;
use windlass_server::walk::{self, Walks};
use windlass_server::{ExecutionFilter, ListedExecution};
use windlass_store::{Query, Reader, Stored, Tenant};
use windlass_views::execution_id;

/// Executions read at a time, from a store and from a server.
const PAGE: usize = 1_000;
const SERVER_PAGE: usize = 100;

impl Place {
    /// A server is not asked beforehand: it says so when it is asked for more.
    pub fn has(&self, id: ExecutionId) -> anyhow::Result<bool> {
        match self {
            Place::Folder(data) => Ok(data.read()?.load(id)?.is_some()),
            Place::Server(_) => Ok(true),
        }
    }

    pub fn no_execution(&self, text: &str) -> Usage {
        let (place, flag) = (self.shown(), self.flag());
        Usage::new(format!("there is no execution `{text}` {place}")).hint(format!(
            "`windlass executions list{flag}` shows the ids; another folder is named with --data DIR"
        ))
    }

    /// The object that stands for an execution everywhere.
    pub fn told(&self, id: ExecutionId) -> anyhow::Result<Value> {
        match self {
            Place::Folder(data) => read(data, id, |told| json!(told.response())),
            Place::Server(server) => Ok(server.get(&["executions", &execution_id(id)], &[])?),
        }
    }

    /// Attempts, ends and what people did, as a chain of hashes.
    pub fn evidence(&self, id: ExecutionId) -> anyhow::Result<Vec<Value>> {
        match self {
            Place::Folder(data) => {
                let entries = evidence(data, id)?;
                Ok(entries.iter().map(|entry| json!(entry)).collect())
            }
            Place::Server(server) => {
                pages(server, &["executions", &execution_id(id), "evidence"], "evidence", &[], usize::MAX)
            }
        }
    }

    /// The execution's net, coloured by its journal.
    pub fn picture(&self, id: ExecutionId, format: Drawn) -> anyhow::Result<String> {
        match self {
            Place::Folder(data) => Ok(read(data, id, |told| told.picture(format.into()))??),
            Place::Server(server) => {
                let asked = server.asked(Method::GET, &["executions", &execution_id(id), "graph"]);
                Ok(server.text(asked.query(&[("format", format.name())]))?)
            }
        }
    }

    pub fn follow(&self, id: ExecutionId) -> anyhow::Result<Follower> {
        match self {
            Place::Folder(data) => Follower::new(Box::new(StoreTrail::new(data.read()?, id)), id),
            Place::Server(server) => Follower::new(Box::new(ServerTrail::new(server.clone(), id)), id),
        }
    }

    /// Those with that status, the newest first, and whether there are more. `open` are all that have not ended.
    pub fn list(&self, status: Option<&str>, limit: usize) -> anyhow::Result<(Vec<Value>, bool)> {
        let wanted = limit.saturating_add(1);
        let mut found = match self {
            Place::Folder(data) => list_in(data, status, wanted)?,
            Place::Server(server) => list_at(server, status, wanted)?,
        };
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((found, more))
    }
}

fn list_in(data: &Data, status: Option<&str>, wanted: usize) -> anyhow::Result<Vec<Value>> {
    let (mut reader, limit) = (data.read()?, wanted.min(PAGE));
    let status = status.and_then(ExecutionFilter::of).map(ExecutionFilter::phases);
    let mut query = Query { tenant: Some(Tenant::default()), status, limit, ..Query::default() };
    let mut found = Vec::new();
    loop {
        let page = reader.list(&query)?;
        let last = page.len() < limit;
        query.before = page.last().map(|listed| listed.execution);
        found.extend(page.into_iter().map(|row| json!(ListedExecution::from(row))));
        if last || found.len() >= wanted {
            return Ok(found);
        }
    }
}

fn list_at(server: &Client, status: Option<&str>, wanted: usize) -> anyhow::Result<Vec<Value>> {
    let status: Vec<(&str, &str)> = status.map(|status| ("status", status)).into_iter().collect();
    pages(server, &["executions"], "executions", &status, wanted)
}

/// So many entries of a list, page by page.
fn pages(
    server: &Client,
    path: &[&str],
    key: &str,
    asked: &[(&str, &str)],
    wanted: usize,
) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let limit = (wanted - found.len()).min(SERVER_PAGE).to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(asked);
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let mut page = server.get(path, &query)?;
        if let Some(listed) = page[key].as_array_mut() {
            found.append(listed);
        }
        cursor = page["pagination"]["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || found.len() >= wanted {
            return Ok(found);
        }
    }
}

fn read<T>(data: &Data, id: ExecutionId, tell: impl FnOnce(&Told<'_>) -> T) -> anyhow::Result<T> {
    let mut reader = data.read()?;
    let stored = stored(&mut reader, id)?;
    Ok(Stories::default().tell(&mut reader, stored, tell)?)
}

fn evidence(data: &Data, id: ExecutionId) -> anyhow::Result<Vec<Evidence>> {
    let mut reader = data.read()?;
    let stored = stored(&mut reader, id)?;
    let net = reader.net(stored.state.head.net)?.ok_or(TellError::NoNet(id))?;
    let ledger = Ledger::new(id, stored.options.correlation.as_deref());
    let all = Walks::default().page(&mut reader, (id, &net, ledger), walk::Place::default(), usize::MAX)?;
    Ok(all.0)
}

fn stored(reader: &mut impl Reader, id: ExecutionId) -> anyhow::Result<Stored> {
    let gone = || Usage::new(format!("there is no execution {}", execution_id(id)));
    Ok(reader.load(id)?.ok_or_else(gone)?)
}
