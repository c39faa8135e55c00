//! Mail on disk: posted once, taken once, and from one sender to one receiver in order.

use super::journal::Shadow;
use crate::invariants::Broken;
use crate::system::definitions::NOWHERE;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::{Event, ExecutionId};
use windlass_store::{Applied, Commit, Letter, MailId, Reader, StoredMail, Write};

#[derive(Debug, Default)]
pub(in crate::system) struct Mailbook {
    open: BTreeMap<MailId, Posted>,
    taken: BTreeSet<MailId>,
    newest: Option<MailId>,
    pub posted: u64,
}

#[derive(Debug, Clone, Copy)]
struct Posted {
    /// None: from another process.
    from: Option<ExecutionId>,
    to: ExecutionId,
}

/// A start, an order to stop and an end are mailed by the commit that records them.
pub(super) fn goes_with(commit: &Commit, shadows: &BTreeMap<ExecutionId, Shadow>) -> Result<(), Broken> {
    let parent = shadows.get(&commit.execution).and_then(|shadow| shadow.state.head.parent.clone());
    let sent = |to: ExecutionId, is: fn(&Letter) -> bool| {
        commit.mail.iter().any(|mail| mail.to == to && is(&mail.letter))
    };
    for record in &*commit.records {
        let mailed = match &record.event {
            Event::ChildStarted { child, .. } => {
                sent(*child, |letter| matches!(letter, Letter::Start { .. }))
            }
            Event::StopAsked { children, .. } => {
                children.iter().all(|child| sent(*child, |letter| matches!(letter, Letter::Input(_))))
            }
            Event::Ended { .. } => parent
                .as_ref()
                .is_none_or(|parent| sent(parent.execution, |letter| matches!(letter, Letter::Ended { .. }))),
            _ => true,
        };
        if !mailed {
            let what = format!("a commit of {} says {:?} and sends no mail", commit.execution, record.event);
            return Err(Broken::new("mail with its commit", what));
        }
    }
    Ok(())
}

impl Mailbook {
    pub fn written(
        &mut self,
        batch: &[Write],
        applied: &[Applied],
        reader: &mut impl Reader,
    ) -> Result<(), Broken> {
        let (mut senders, mut taken) = (Vec::new(), Vec::new());
        for (write, applied) in batch.iter().zip(applied) {
            match (write, applied) {
                (Write::Commit(commit), Applied::Committed(_)) => {
                    senders.extend(commit.mail.iter().map(|_| Some(commit.execution)));
                    taken.extend(commit.consumed.iter().copied());
                }
                (Write::Settle { mail, .. }, Applied::Done) => taken.push(*mail),
                (Write::Accept(_), Applied::Accepted(_)) => senders.push(None),
                _ => {}
            }
        }
        self.take(&taken)?;
        let posted = self.unseen(reader)?;
        if posted.len() != senders.len() {
            let what =
                format!("{} letters were posted, and {} are in the inbox", senders.len(), posted.len());
            return Err(Broken::new("mail once", what));
        }
        for (mail, from) in posted.into_iter().zip(senders) {
            self.post(&mail, from);
        }
        Ok(())
    }

    fn post(&mut self, mail: &StoredMail, from: Option<ExecutionId>) {
        self.posted += 1;
        // Where nothing can begin, nothing waits for its beginning.
        let nowhere = match &mail.letter {
            Letter::Start { definition, .. } => definition.to_string().contains(NOWHERE),
            Letter::Input(_) | Letter::Retry(_) | Letter::Ended { .. } => false,
        };
        let from = from.filter(|_| !nowhere);
        self.open.insert(mail.id, Posted { from, to: mail.to });
        self.newest = Some(mail.id);
    }

    fn unseen(&self, reader: &mut impl Reader) -> Result<Vec<StoredMail>, Broken> {
        reader.inbox(self.newest, usize::MAX >> 1).map_err(super::store)
    }

    /// A batch is on disk as a whole, so the order of its writes is not that of the mail: what changes nothing is settled
    /// after the commits.
    fn take(&mut self, ids: &[MailId]) -> Result<(), Broken> {
        let mut removed = Vec::new();
        for id in ids {
            let Some(posted) = self.open.remove(id) else {
                return Err(Broken::new(
                    "mail once",
                    format!("mail {} was taken again or never posted", id.0),
                ));
            };
            removed.push((*id, posted));
        }
        self.taken.extend(ids);
        removed.into_iter().try_for_each(|(id, posted)| self.check_order(id, posted))
    }

    fn check_order(&self, id: MailId, posted: Posted) -> Result<(), Broken> {
        let Some(from) = posted.from else { return Ok(()) };
        let earlier = self.open.iter().find(|(_, other)| other.from == Some(from) && other.to == posted.to);
        if let Some((first, _)) = earlier.filter(|(first, _)| **first < id) {
            let what = format!("mail {} from {from} to {} came before mail {}", id.0, posted.to, first.0);
            return Err(Broken::new("mail in order", what));
        }
        Ok(())
    }

    /// Counts the mail of the batch in progress that is settled, and the mail that is not.
    pub fn survivors(
        &self,
        outstanding: &[Write],
        reader: &mut impl Reader,
    ) -> Result<(usize, usize), Broken> {
        let open = reader.inbox(None, usize::MAX >> 1).map_err(super::store)?;
        let (mut kept, mut lost) = (0, 0);
        for write in outstanding {
            match write {
                Write::Settle { mail, .. } if !self.open.contains_key(mail) => {}
                Write::Settle { mail, .. } if open.iter().any(|found| found.id == *mail) => lost += 1,
                Write::Settle { .. } => kept += 1,
                _ => {}
            }
        }
        Ok((kept, lost))
    }

    /// Determines from the inbox, after a crash, how much of the batch in progress was written.
    pub fn recovered(
        &mut self,
        outstanding: &[Write],
        kept: bool,
        reader: &mut impl Reader,
    ) -> Result<(), Broken> {
        let open: BTreeSet<MailId> =
            reader.inbox(None, usize::MAX >> 1).map_err(super::store)?.iter().map(|mail| mail.id).collect();
        let gone: Vec<MailId> = self.open.keys().copied().filter(|id| !open.contains(id)).collect();
        let was_taken = |id: &MailId| {
            outstanding.iter().any(|write| match write {
                Write::Commit(commit) => commit.consumed.contains(id),
                Write::Settle { mail, .. } => mail == id,
                _ => false,
            })
        };
        if let Some(id) = gone.iter().find(|id| !was_taken(id)) {
            return Err(Broken::new("durability", format!("mail {} is gone", id.0)));
        }
        self.take(&gone)?;
        if let Some(id) = open.iter().find(|id| self.taken.contains(id)) {
            return Err(Broken::new("durability", format!("mail {} is back", id.0)));
        }
        let senders = outstanding.iter().flat_map(|write| match write {
            Write::Commit(commit) if kept => vec![Some(commit.execution); commit.mail.len()],
            _ => Vec::new(),
        });
        let (unseen, senders) = (self.unseen(reader)?, senders.collect::<Vec<_>>());
        if unseen.len() != senders.len() {
            let what = format!("after a crash {} letters came, where {} belong", unseen.len(), senders.len());
            return Err(Broken::new("all or nothing", what));
        }
        for (mail, from) in unseen.into_iter().zip(senders) {
            self.post(&mail, from);
        }
        Ok(())
    }

    /// Checks that an execution exists for each accepted start of a known name.
    pub fn over(&self, shadows: &BTreeMap<ExecutionId, Shadow>) -> Result<(), Broken> {
        for (id, shadow) in shadows {
            for record in &shadow.journal {
                let Event::ChildStarted { child, definition, .. } = &record.event else { continue };
                let unknown = definition.to_string().contains(NOWHERE);
                if !shadows.contains_key(child) && !unknown {
                    let what = format!("execution {id} asked for {child}, which never began");
                    return Err(Broken::new("mail once", what));
                }
            }
        }
        Ok(())
    }
}
