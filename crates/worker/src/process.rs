//! One process group: a command and everything it started. It ends as a whole.

use crate::guard::{Guard, GuardError};
use crate::halt::Halt;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until};

/// How often it is looked whether a group is gone, once its leader is: processes that are no children cannot be
/// waited for.
const LOOK: Duration = Duration::from_millis(10);

/// What was killed is gone in no time, unless it hangs in the kernel; then nobody can do more.
const GONE_WITHIN: Duration = Duration::from_secs(5);

pub(crate) type SharedGuard = Arc<Mutex<Guard>>;

/// Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    guard: SharedGuard,
}

impl Group {
    /// Of a child that was started as the leader of its own group.
    pub(crate) fn of(child: &Child, guard: &SharedGuard) -> Result<Option<Group>, GuardError> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let Some(id) = id else { return Ok(None) };
        guard.lock().unwrap_or_else(PoisonError::into_inner).began(id.as_raw_nonzero().get())?;
        Ok(Some(Group { id, guard: Arc::clone(guard) }))
    }

    /// Waits until the command and its whole group are gone. What the command leaves behind is ended as well: TERM,
    /// and KILL after `grace_ms`. So is all of it when the halt is pulled, with the grace that comes with it.
    pub(crate) async fn ended(
        &self,
        child: &mut Child,
        halt: &mut Halt,
        grace_ms: u64,
    ) -> io::Result<ExitStatus> {
        let mut status = None;
        let mut end = Ending::NotAsked;
        loop {
            match status {
                Some(status) if self.is_gone() || end.is_hopeless() => return Ok(status),
                None if end.is_hopeless() => return Err(io::Error::other("it was killed and does not end")),
                Some(_) | None => {}
            }
            tokio::select! {
                exit = child.wait(), if status.is_none() => {
                    status = Some(exit?);
                    if matches!(end, Ending::NotAsked) && !self.is_gone() {
                        end = self.ask(end, grace_ms);
                    }
                }
                grace_ms = halt.pulled() => end = self.ask(end, grace_ms),
                () = end.due() => end = self.kill(),
                () = sleep(LOOK), if status.is_some() || matches!(end, Ending::Killed(_)) => {}
            }
        }
    }

    /// A later word can only make it shorter.
    fn ask(&self, end: Ending, grace_ms: u64) -> Ending {
        let kill_at = Instant::now() + Duration::from_millis(grace_ms.min(GRACE_MAX_MS));
        match end {
            Ending::Killed(at) => Ending::Killed(at),
            Ending::NotAsked if grace_ms == 0 => self.kill(),
            Ending::NotAsked => {
                self.signal(Signal::TERM);
                Ending::Asked { kill_at }
            }
            Ending::Asked { kill_at: earlier } => Ending::Asked { kill_at: kill_at.min(earlier) },
        }
    }

    fn kill(&self) -> Ending {
        self.signal(Signal::KILL);
        Ending::Killed(Instant::now())
    }

    /// A group that is gone already needs no signal.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    fn is_gone(&self) -> bool {
        // Whom we may not signal is still there.
        matches!(test_kill_process_group(self.id), Err(Errno::SRCH))
            || only_zombies(self.id.as_raw_nonzero().get())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.signal(Signal::KILL);
        }
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).ended(self.id.as_raw_nonzero().get());
    }
}

/// Longer than anybody waits for a process to end by itself.
const GRACE_MAX_MS: u64 = 60 * 60 * 1000;

#[derive(Clone, Copy)]
enum Ending {
    NotAsked,
    Asked { kill_at: Instant },
    Killed(Instant),
}

impl Ending {
    async fn due(&self) {
        match self {
            Ending::Asked { kill_at } => sleep_until(*kill_at).await,
            Ending::NotAsked | Ending::Killed(_) => std::future::pending().await,
        }
    }

    fn is_hopeless(&self) -> bool {
        matches!(self, Ending::Killed(at) if at.elapsed() > GONE_WITHIN)
    }
}

/// In a container whose first process waits for nobody, dead grandchildren stay in the process table for ever. Where
/// there is no /proc to ask, they count as living.
fn only_zombies(group: i32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let stats =
        processes.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    !stats.into_iter().any(|stat| lives_in(&stat, group))
}

/// `pid (name) state parent group …`; the name may hold anything, brackets too.
fn lives_in(stat: &str, group: i32) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next();
    let is_member = fields.nth(1).and_then(|field| field.parse().ok()) == Some(group);
    is_member && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_lives_unless_it_is_a_zombie() {
        assert!(lives_in("12 (sh) S 1 40 40 0 -1", 40));
        assert!(lives_in("12 (a) b) c) R 1 40 40 0 -1", 40));
        assert!(!lives_in("12 (sh) Z 1 40 40 0 -1", 40));
        assert!(!lives_in("12 (sh) S 40 41 40 0 -1", 40));
        assert!(!lives_in("nonsense", 40));
    }
}
