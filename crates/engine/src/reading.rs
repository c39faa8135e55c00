//! Execution of lookups by a reader.

use crate::lane::{ChildCheck, end_of, pages};
use crate::retries;
use crate::wake::{ChildReading, Defaults, Found, InputsLookup, Lookup, PreparedStart};
use std::sync::Arc;
use windlass_kernel::{ChildResult, ExecutionId, Record, RunId, with_defaults};
use windlass_store::{Reader, StoreError, StoredDefinition};

/// Journal rows read at a time.
const JOURNAL_PAGE: usize = 1_000;
/// Number of journal rows that the only reader of a lane reads at a time: it takes about as long as loading an
/// execution, which bounds the delay of other lookups.
const SHARED_PAGE: usize = 100;

/// Bound for the rows of one released execution: all of them, because the limits of the execution bound their number.
const ALL: usize = usize::MAX >> 1;

/// Performs one lookup of a lane.
pub fn look_up(reader: &mut impl Reader, lookup: &Lookup, check: &ChildCheck) -> Result<Found, StoreError> {
    Ok(match lookup {
        Lookup::Execution(id) => Found::Execution(reader.load(*id)?.map(Box::new)),
        Lookup::Net(digest) => Found::Net(reader.net(*digest)?.map(Arc::new)),
        Lookup::Values(id, needs) => Found::Values(reader.values(*id, needs)?),
        Lookup::Definition(id) => {
            let found = reader.definition(*id)?;
            with_net(reader, found)?
        }
        Lookup::Named(tenant, which, version) => {
            let found = reader.find_definition(tenant, which, *version)?;
            with_net(reader, found)?
        }
        Lookup::Past(retry, net) => Found::Past(retries::plan(reader, retry, net.clone())?.map(Box::new)),
        Lookup::End(id, run, from) => end(reader, *id, *run, *from)?,
        Lookup::Result(reading) => result(reader, reading)?,
        Lookup::Due { after, until } => Found::Due(reader.due(after.as_ref(), *until, pages::DUE)?),
        Lookup::Offers { after } => Found::Offers(reader.offers(*after, pages::RECOVERY)?),
        Lookup::Stops { after } => Found::Stops(reader.stops(after.as_ref(), pages::RECOVERY)?),
        Lookup::Unfinished => Found::Unfinished(reader.unfinished(pages::RECOVERY)?),
        Lookup::Open(tenant, limit) => Found::Open(reader.open_executions(tenant, *limit)?),
        Lookup::OffersOf(id) => Found::Offers(reader.offers_of(*id, RunId(0), ALL)?),
        Lookup::Offer(id, run) => {
            let mut offers = reader.offers_of(*id, RunId(run.0.saturating_sub(1)), 1)?;
            offers.retain(|offer| offer.run == *run);
            Found::Offers(offers)
        }
        Lookup::InboxOf(id) => Found::Inbox(reader.inbox_of(*id, ALL)?),
        Lookup::Inbox { after } => Found::Inbox(reader.inbox(*after, pages::INBOX)?),
        Lookup::Inputs(wanted) => Found::Inputs(inputs(reader, wanted, check)?),
    })
}

/// Returns the inputs of a start with their defaults; the inner `Err` has their problem.
fn inputs(
    reader: &mut impl Reader,
    wanted: &InputsLookup,
    check: &ChildCheck,
) -> Result<Result<PreparedStart, String>, StoreError> {
    let (given, id) = ((*wanted.given).clone(), wanted.execution.to_string());
    Ok(match &wanted.defaults {
        Defaults::Of(defaults) => {
            with_defaults(defaults, given, &id).map(|inputs| PreparedStart { inputs, net: None })
        }
        Defaults::Definition(definition, net) => match reader.definition(*definition)? {
            Some(definition) => with_defaults(&definition.workload, given, &id).and_then(|inputs| {
                check.check(&definition, net, &inputs).map(|net| PreparedStart { inputs, net })
            }),
            None => Err("its definition was deleted meanwhile".to_owned()),
        },
    })
}

fn with_net(reader: &mut impl Reader, found: Option<StoredDefinition>) -> Result<Found, StoreError> {
    let Some(definition) = found else { return Ok(Found::Definition(None)) };
    match reader.net(definition.net)? {
        Some(net) => Ok(Found::Definition(Some(Box::new((definition, Arc::new(net)))))),
        None => Err(StoreError::Corrupt(format!("the net of definition `{}` is missing", definition.name))),
    }
}

fn end(reader: &mut impl Reader, id: ExecutionId, run: RunId, from: u64) -> Result<Found, StoreError> {
    let (records, more) = page(reader, id, from)?;
    let next = from + records.len() as u64;
    Ok(match end_of(&records, run) {
        None if more => Found::EndLater(next),
        end => Found::End(end),
    })
}

fn result(reader: &mut impl Reader, reading: &ChildReading) -> Result<Found, StoreError> {
    let (records, more) = page(reader, reading.child, reading.version)?;
    let mut reading = Box::new(reading.clone());
    records.iter().for_each(|record| reading.outputs.note(record));
    reading.version += records.len() as u64;
    reading.last = records.into_iter().last().map(|record| record.event).or(reading.last);
    Ok(if more { Found::ResultLater(reading) } else { Found::Result(whole_result(reader, &reading)?) })
}

fn whole_result(reader: &mut impl Reader, reading: &ChildReading) -> Result<Option<ChildResult>, StoreError> {
    let Some(last) = &reading.last else { return Ok(None) };
    let Some(stored) = reader.load(reading.child)? else { return Ok(None) };
    let net = reader.net(stored.state.head.net)?;
    Ok(net.and_then(|net| reading.outputs.child_result(&net, last)))
}

/// Returns the records of one page of a journal, and whether others follow.
fn page(
    reader: &mut impl Reader,
    execution: ExecutionId,
    from: u64,
) -> Result<(Vec<Record>, bool), StoreError> {
    let rows = reader.journal(execution, from, SHARED_PAGE)?;
    let more = rows.len() >= SHARED_PAGE;
    Ok((rows.into_iter().flat_map(|row| row.records).collect(), more))
}

/// Reads the whole journal of an execution.
pub fn journal(reader: &mut impl Reader, execution: ExecutionId) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::new();
    loop {
        let rows = reader.journal(execution, records.len() as u64, JOURNAL_PAGE)?;
        let more = rows.len() >= JOURNAL_PAGE;
        records.extend(rows.into_iter().flat_map(|row| row.records));
        if !more {
            return Ok(records);
        }
    }
}
