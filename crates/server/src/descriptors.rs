//! The limit on open files. Connections must leave enough of them for the engine, which otherwise could neither start steps
//! nor write commits.

use crate::settings::Settings;
use anyhow::ensure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Default maximum number of connections.
const CONNECTIONS_MAX: u64 = 10_000;
/// Minimum number of connections of a usable server.
const CONNECTIONS_MIN: u64 = 16;
/// Open files of the engine: the store with its readers and its log, artifacts, webhooks, logs, the runtime.
const ENGINE_RESERVE: u64 = 512;
/// Open files of one slot: the pipes of a process while it starts, sockets and files of its tools.
const SLOT_RESERVE: u64 = 16;

/// Limits on open files of the process; None: no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    /// The limit at the start of the process.
    pub before: Option<u64>,
    pub now: Option<u64>,
}

/// Raises the limit on open files once, as far as the system permits.
pub(crate) fn raise() -> OpenFiles {
    static RAISED: OnceLock<OpenFiles> = OnceLock::new();
    *RAISED.get_or_init(|| {
        let before = getrlimit(Resource::Nofile);
        let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
        let is_raised = setrlimit(Resource::Nofile, wanted).is_ok();
        OpenFiles { before: before.current, now: if is_raised { wanted.current } else { before.current } }
    })
}

/// Returns the maximum number of connections with this number of slots, and a warning if that is less than the setting.
/// `open_files` is None if there is no limit.
pub(crate) fn connections(
    settings: &Settings,
    open_files: Option<u64>,
    slots: u32,
) -> anyhow::Result<(u32, Option<String>)> {
    let reserve = ENGINE_RESERVE + SLOT_RESERVE * u64::from(slots);
    let allowed = open_files.map_or(u64::MAX, |limit| limit.saturating_sub(reserve));
    ensure!(
        allowed >= CONNECTIONS_MIN,
        "the system permits {} open files, and the engine needs {reserve} with {slots} slots\n  hint: raise the limit \
         (`ulimit -n`, `LimitNOFILE` of systemd) to {} or more, or set fewer --slots",
        open_files.unwrap_or_default(),
        reserve + CONNECTIONS_MIN
    );
    let wanted = settings.max_connections.map_or(CONNECTIONS_MAX, u64::from);
    let warning = (settings.max_connections.is_some() && wanted > allowed).then(|| {
        format!(
            "max-connections is {wanted}, but the limit on open files permits {allowed}, which is used; raise the limit to \
             {}",
            wanted + reserve
        )
    });
    Ok((u32::try_from(wanted.min(allowed)).unwrap_or(u32::MAX), warning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(asked: Option<&str>, open_files: Option<u64>, expected: Option<(u32, bool)>) {
        let flags: BTreeMap<_, _> =
            asked.into_iter().map(|asked| ("max-connections", asked.to_owned())).collect();
        let settings = Settings::load(&flags, |_| None).unwrap();
        let found = connections(&settings, open_files, 8).ok();
        let found = found.map(|(count, warning)| (count, warning.is_some()));
        assert_eq!(found, expected, "{asked:?} of {open_files:?}");
    }

    #[test]
    fn connections_leave_open_files_for_the_engine() {
        check(None, None, Some((10_000, false)));
        check(None, Some(20_000), Some((10_000, false)));
        check(None, Some(1_024), Some((384, false)));
        check(Some("200"), Some(1_024), Some((200, false)));
        check(Some("5000"), Some(1_024), Some((384, true)));
        check(Some("50000"), Some(1_000_000), Some((50_000, false)));
        check(None, Some(256), None);
    }
}
