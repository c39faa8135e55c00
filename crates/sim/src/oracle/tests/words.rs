//! Traces in short words, separated by `;`. A `!` at the end means refused; `@ms` before an entry sets the time.
//! Fences rise by themselves unless `^fence` is given; an answer is under the last fence of its firing.

use crate::seen::{Ask, Bell, Class, Firing, Of, Reply, Seen, Status, Verdict, Waits, What};
use std::collections::BTreeMap;

pub(super) fn read(trace: &str) -> Vec<Seen> {
    let mut reader = Reader::default();
    let entries = trace.split(';').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| reader.entry(entry)).collect()
}

#[derive(Default)]
struct Reader {
    at: i64,
    fence: u64,
    fences: BTreeMap<Firing, u64>,
}

/// The words of one entry by what they look like.
struct Entry<'a> {
    accepted: bool,
    words: Vec<&'a str>,
    fence: Option<u64>,
    step: usize,
    path: Vec<u32>,
    arg: Option<i64>,
    attempt: u32,
    sets: Option<(usize, bool)>,
}

impl<'a> Entry<'a> {
    fn new(text: &'a str) -> Entry<'a> {
        let accepted = !text.ends_with('!');
        let mut entry = Entry {
            accepted,
            words: Vec::new(),
            fence: None,
            step: 0,
            path: Vec::new(),
            arg: None,
            attempt: 1,
            sets: None,
        };
        text.trim_end_matches('!').split_whitespace().for_each(|word| entry.word(word));
        entry
    }

    fn word(&mut self, word: &'a str) {
        let (kind, rest) = word.split_at(1);
        let digit = rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == 'k');
        match (kind, digit) {
            ("^", true) => self.fence = Some(number(rest)),
            ("s", true) => self.step = number(rest),
            ("/", true) => self.path = rest.split('/').map(number).collect(),
            ("=", true) => self.arg = Some(number(rest)),
            ("x", true) => self.attempt = number(rest),
            ("k", true) => self.sets = Some((number(rest), true)),
            ("-", true) if rest.starts_with('k') => self.sets = Some((number(&rest[1..]), false)),
            (_, _) => self.words.push(word),
        }
    }

    fn at(&self, index: usize) -> &'a str {
        self.words.get(index).copied().unwrap_or("")
    }

    fn firing(&self) -> Firing {
        number(self.at(1))
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

impl Reader {
    fn entry(&mut self, text: &str) -> Seen {
        let text = match text.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((at, rest)) => {
                self.at = number(at);
                rest
            }
            None => text,
        };
        Seen { at: self.at, what: self.what(&Entry::new(text)) }
    }

    fn what(&mut self, entry: &Entry<'_>) -> What {
        let accepted = entry.accepted;
        match entry.at(0) {
            "created" => What::Created,
            "assigned" => What::Assigned { accepted },
            "begun" => What::Begun { accepted },
            "go" => self.dispatched(entry),
            "open" => opened(entry),
            "stop" => What::StopAsked { firings: entry.words[1..].iter().map(|word| number(word)).collect() },
            "restart" => What::Restarted { generation: number(entry.at(1)) },
            "whole" => What::LostWhole { generation: number(entry.at(1)), accepted },
            "bell" => What::Rang { timer: bell(entry), accepted },
            "uploaded" => What::Uploaded { failed: entry.at(1) == "failed", accepted },
            "child" => {
                What::ChildEnded { firing: entry.firing(), result: reply(&entry.words[2..]), accepted }
            }
            "over" => What::Over,
            "." => What::Settled,
            "did" | "lost" | "timeout" => self.leased(entry),
            _ => asked_or_status(entry),
        }
    }

    fn dispatched(&mut self, entry: &Entry<'_>) -> What {
        let firing = entry.firing();
        self.fence = entry.fence.unwrap_or(self.fence + 1);
        self.fences.insert(firing, self.fence);
        What::Dispatched {
            firing,
            step: entry.step,
            path: entry.path.clone(),
            of: of(entry.at(2)),
            attempt: entry.attempt,
            fence: self.fence,
            arg: entry.arg,
        }
    }

    fn leased(&self, entry: &Entry<'_>) -> What {
        let (firing, accepted) = (entry.firing(), entry.accepted);
        let fence = entry.fence.or(self.fences.get(&firing).copied()).unwrap_or(0);
        match entry.at(0) {
            "lost" => What::Lost { firing, fence, started: entry.at(2) == "started", accepted },
            "timeout" => What::AttemptTimedOut { firing, fence, accepted },
            _ => {
                What::Reported { firing, fence, result: reply(&entry.words[2..]), sets: entry.sets, accepted }
            }
        }
    }
}

fn of(word: &str) -> Of {
    match (word, word.strip_prefix("hook:")) {
        (_, Some(firing)) => Of::Hook { of: number(firing) },
        ("lap", None) => Of::Iteration,
        ("final", None) => Of::Final,
        (_, None) => Of::Step,
    }
}

fn opened(entry: &Entry<'_>) -> What {
    let what = match entry.at(2) {
        "route" => Waits::Route,
        "delay" => Waits::Delay,
        "child" => Waits::Child,
        _ => Waits::Person,
    };
    let (firing, step, path) = (entry.firing(), entry.step, entry.path.clone());
    What::Opened { firing, step, path, of: of(entry.at(3)), what, arg: entry.arg }
}

fn reply(words: &[&str]) -> Reply {
    match words {
        ["transient"] => Reply::Failed(Class::Transient),
        ["permanent"] => Reply::Failed(Class::Permanent),
        ["unknown"] => Reply::Failed(Class::Unknown),
        ["stopped"] => Reply::Stopped,
        ["cancelled"] => Reply::Cancelled,
        ["later", ms] => Reply::Later { ms: number(ms) },
        [n] => Reply::Done { n: number(n) },
        _ => Reply::Done { n: 0 },
    }
}

fn bell(entry: &Entry<'_>) -> Bell {
    let firing = || number(entry.at(2));
    match entry.at(1) {
        "deadline" => Bell::Deadline,
        "backoff" => Bell::Backoff { firing: firing() },
        "delay" => Bell::Delay { firing: firing() },
        "route" => Bell::Route { firing: firing() },
        "person" => Bell::Person { firing: firing() },
        "child" => Bell::Child { firing: firing() },
        _ => Bell::Gate { step: entry.step },
    }
}

fn asked_or_status(entry: &Entry<'_>) -> What {
    let has = |word: &str| entry.words.contains(&word);
    let ask = match entry.at(0) {
        "hold" => Ask::Hold,
        "resume" => Ask::Resume,
        "cancel" => Ask::Cancel { force: has("force"), compensate: has("compensate") },
        "patch" => {
            let (flag, value) = entry.sets.unwrap_or((0, true));
            Ask::Patch { flag, value }
        }
        "route" => Ask::RouteReady { firing: entry.firing() },
        "confirm" | "deny" => {
            let outcome = if has("confirm") { Verdict::Succeeded } else { Verdict::Failed };
            Ask::Complete { firing: entry.firing(), outcome, open: !has("closed"), repeated: has("repeated") }
        }
        word => return What::Status(status(word)),
    };
    What::Asked { ask, accepted: entry.accepted }
}

fn status(word: &str) -> Status {
    match word {
        "queued" => Status::Queued,
        "starting" => Status::Starting,
        "running" => Status::Running,
        "paused" => Status::Paused,
        "draining" => Status::Draining,
        "compensating" => Status::Compensating,
        "finalizing" => Status::Finalizing,
        "completed" => Status::Completed,
        "partial" => Status::Partial,
        "failed" => Status::Failed,
        "cancelled" => Status::Cancelled,
        other => panic!("no such word: {other}"),
    }
}
