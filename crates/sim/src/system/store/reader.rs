//! A reader over either store. A sabotaged one forgets what was there when its process began.

use crate::system::disk::DiskReader;
use std::collections::BTreeSet;
use windlass_kernel::{ExecutionId, Millis, Need, Net, NetDigest, RunId, Values};
use windlass_store::sqlite::SqliteReader;
use windlass_store::{
    DefinitionId, DueTimer, JournalPage, ListedExecution, MailId, Offer, PageBounds, Position, Query, Reader,
    Rows, Stop, StoreError, Stored, StoredDefinition, StoredLog, StoredMail, Tenant, Which,
};

#[derive(Debug)]
pub(in crate::system) enum Source {
    Memory(DiskReader),
    File(Box<SqliteReader>),
}

impl From<DiskReader> for Source {
    fn from(reader: DiskReader) -> Source {
        Source::Memory(reader)
    }
}

impl From<SqliteReader> for Source {
    fn from(reader: SqliteReader) -> Source {
        Source::File(Box::new(reader))
    }
}

/// Rows that a sabotaged reader omits after a restart.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::system) struct Forgets {
    pub timers: bool,
    pub mail: bool,
    pub leases: bool,
    pub offers: bool,
    pub unfinished: bool,
    /// Order of mail.
    pub order: bool,
}

#[derive(Debug)]
pub(in crate::system) struct SystemReader {
    source: Source,
    forgets: Forgets,
    timers: BTreeSet<DueTimer>,
    mail: BTreeSet<MailId>,
}

macro_rules! of {
    ($reader:expr, $call:ident ( $($argument:expr),* )) => {
        match &mut $reader.source {
            Source::Memory(reader) => reader.$call($($argument),*),
            Source::File(reader) => reader.$call($($argument),*),
        }
    };
}

impl SystemReader {
    pub fn new(source: Source, forgets: Forgets) -> Result<SystemReader, StoreError> {
        let (timers, mail) = (BTreeSet::new(), BTreeSet::new());
        let mut reader = SystemReader { source, forgets, timers, mail };
        if forgets.timers {
            reader.timers = of!(reader, due(None, Millis(i64::MAX), usize::MAX))?.into_iter().collect();
        }
        if forgets.mail {
            reader.mail = of!(reader, inbox(None, usize::MAX))?.into_iter().map(|mail| mail.id).collect();
        }
        Ok(reader)
    }
}

impl Reader for SystemReader {
    fn load(&mut self, execution: ExecutionId) -> Result<Option<Stored>, StoreError> {
        of!(self, load(execution))
    }

    fn journal_page(
        &mut self,
        execution: ExecutionId,
        from: u64,
        bounds: PageBounds,
    ) -> Result<JournalPage, StoreError> {
        of!(self, journal_page(execution, from, bounds))
    }

    fn values(&mut self, execution: ExecutionId, needs: &[Need]) -> Result<Values, StoreError> {
        of!(self, values(execution, needs))
    }

    fn net(&mut self, digest: NetDigest) -> Result<Option<Net>, StoreError> {
        of!(self, net(digest))
    }

    fn due(
        &mut self,
        after: Option<&DueTimer>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<DueTimer>, StoreError> {
        let mut due = of!(self, due(after, until, limit))?;
        due.retain(|timer| !self.timers.contains(timer));
        Ok(due)
    }

    fn offers(
        &mut self,
        after: Option<(ExecutionId, RunId)>,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        let mut offers = of!(self, offers(after, limit))?;
        if self.forgets.leases {
            offers.iter_mut().for_each(|offer| offer.lease = None);
        }
        if self.forgets.offers {
            offers.clear();
        }
        Ok(offers)
    }

    fn offers_of(
        &mut self,
        execution: ExecutionId,
        after: RunId,
        limit: usize,
    ) -> Result<Vec<Offer>, StoreError> {
        of!(self, offers_of(execution, after, limit))
    }

    fn unfinished(&mut self, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let mut cut = of!(self, unfinished(limit))?;
        if self.forgets.unfinished {
            cut.clear();
        }
        Ok(cut)
    }

    fn stops(&mut self, after: Option<&Stop>, limit: usize) -> Result<Vec<Stop>, StoreError> {
        of!(self, stops(after, limit))
    }

    fn inbox(&mut self, after: Option<MailId>, limit: usize) -> Result<Vec<StoredMail>, StoreError> {
        let mut mail = of!(self, inbox(after, limit))?;
        mail.retain(|mail| !self.mail.contains(&mail.id));
        if self.forgets.order {
            mail.reverse();
        }
        Ok(mail)
    }

    fn answer(&mut self, mail: MailId) -> Result<Option<Result<(), String>>, StoreError> {
        of!(self, answer(mail))
    }

    fn list(&mut self, query: &Query) -> Result<Vec<ListedExecution>, StoreError> {
        of!(self, list(query))
    }

    fn definition(&mut self, id: DefinitionId) -> Result<Option<StoredDefinition>, StoreError> {
        of!(self, definition(id))
    }

    fn find_definition(
        &mut self,
        tenant: &Tenant,
        which: &Which,
        version: Option<u32>,
    ) -> Result<Option<StoredDefinition>, StoreError> {
        of!(self, find_definition(tenant, which, version))
    }

    fn logs(
        &mut self,
        execution: ExecutionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        of!(self, logs(execution, after, limit))
    }

    fn logs_before(
        &mut self,
        execution: ExecutionId,
        before: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        of!(self, logs_before(execution, before, limit))
    }

    fn run_logs(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredLog>, StoreError> {
        of!(self, run_logs(execution, run, after, limit))
    }

    fn rows(&mut self, execution: ExecutionId) -> Result<Option<Rows>, StoreError> {
        of!(self, rows(execution))
    }
}
