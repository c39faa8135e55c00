//! Contents of a seed: its users and workers, their definitions, and the times of all faults. They are drawn before
//! anything happens.

use super::definitions;
use crate::rng::Rng;
use windlass_engine::Config;
use windlass_kernel::Millis;
use windlass_store::Definition;

/// Time at which the simulated world begins.
pub(super) const EPOCH: Millis = Millis(1_700_000_000_000);

#[derive(Debug)]
pub(super) struct Plan {
    /// The workers live in the engine's process, die with it, and reach it by no network.
    pub embedded: bool,
    /// The production store over a file.
    pub on_file: bool,
    pub definitions: Vec<Definition>,
    pub starts: Vec<u64>,
    pub workers: usize,
    pub slots: u32,
    /// End of the time in which anything can go wrong; afterwards the world is kind.
    pub trouble_ms: u64,
    pub network: Trouble,
    pub disk: DiskTrouble,
    pub tools: ToolTrouble,
    pub mishaps: Vec<(u64, Mishap)>,
    /// Times at which writes under old leases reach the disk.
    pub stragglers: Vec<u64>,
    /// The engine may die between any two of the things it does, in ten-thousandths.
    pub dies_anywhere: u64,
    pub config: Config,
    /// Maximum number of interventions of users per execution.
    pub meddling: u64,
}

/// Faults of the network, in percent of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub lost: u64,
    pub doubled: u64,
    pub slow: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DiskTrouble {
    /// Slow reads and writes, in percent.
    pub slow: u64,
    /// Maximum time of the other writes: many inputs meet in one batch when a write is slow.
    pub write_ms: u64,
    pub read_ms: u64,
    /// Cold reads, in percent of the first reads of a process.
    pub cold: u64,
    /// Failed writes, in thousandths.
    pub fails: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ToolTrouble {
    pub fails: u64,
    /// Longer than a lease.
    pub long: u64,
}

/// Something that happens to a process, a link or the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    EngineKilled,
    /// Asked to end, as for an upgrade.
    EngineStopped,
    WorkerKilled(usize),
    WorkerStopped(usize),
    LinkCut {
        worker: usize,
        for_ms: u64,
    },
    EngineStalls {
        for_ms: u64,
    },
    ClockJumps(i64),
}

impl Plan {
    pub fn draw(seed: u64, rng: &mut Rng) -> Plan {
        let level = *rng.pick(&[0, 1, 2, 2, 3]);
        let workers = rng.between(1, 3) as usize;
        let trouble_ms = rng.between(15_000, 70_000);
        let count = rng.between(1, 4) as usize;
        let embedded = rng.percent(35);
        let span = trouble_ms * 2 / 3;
        Plan {
            embedded,
            on_file: seed.is_multiple_of(10),
            definitions: definitions::draw(count, EPOCH, rng),
            starts: (0..rng.between(1, 5)).map(|_| rng.below(span)).collect(),
            workers,
            slots: rng.between(1, 3) as u32,
            trouble_ms,
            network: network(level, embedded, rng),
            disk: disk(level, rng),
            tools: ToolTrouble { fails: level * 7, long: if level > 0 { 6 } else { 0 } },
            mishaps: mishaps(level, workers, trouble_ms, rng),
            stragglers: (0..rng.below(1 + level)).map(|_| rng.below(trouble_ms)).collect(),
            dies_anywhere: if level > 1 { rng.below(80) } else { 0 },
            config: Config {
                seed: rng.bits(),
                idle_max: *rng.pick(&[0, 1, 3, 2_048]),
                inbox_poll_ms: *rng.pick(&[700, 3_000, 15_000]),
                ..Config::default()
            },
            meddling: rng.below(1 + level * 2),
        }
    }
}

fn disk(level: u64, rng: &mut Rng) -> DiskTrouble {
    DiskTrouble {
        slow: level * 4,
        write_ms: *rng.pick(&[5, 5, 5, 60, 600]),
        read_ms: *rng.pick(&[2, 2, 2, 40, 400]),
        cold: level * 10,
        fails: if level > 1 { rng.below(25) } else { 0 },
    }
}

fn network(level: u64, embedded: bool, rng: &mut Rng) -> Trouble {
    if embedded || level == 0 {
        return Trouble { lost: 0, doubled: 0, slow: 0 };
    }
    let most = level * 6;
    Trouble { lost: rng.below(most), doubled: rng.below(most), slow: rng.below(most * 2) }
}

fn mishaps(level: u64, workers: usize, within_ms: u64, rng: &mut Rng) -> Vec<(u64, Mishap)> {
    let count = if level == 0 { 0 } else { rng.below(level * 5) };
    let one = |rng: &mut Rng| {
        let mishap = match rng.below(100) {
            0..=34 => Mishap::EngineKilled,
            35..=42 => Mishap::EngineStopped,
            43..=62 => Mishap::WorkerKilled(rng.index(workers)),
            63..=69 => Mishap::WorkerStopped(rng.index(workers)),
            70..=74 => Mishap::EngineStalls { for_ms: *rng.pick(&[500, 8_000, 40_000]) },
            75..=88 => {
                Mishap::LinkCut { worker: rng.index(workers), for_ms: *rng.pick(&[2_000, 12_000, 50_000]) }
            }
            _ => Mishap::ClockJumps(*rng.pick(&[-60_000, -5_000, -100, 100, 5_000, 60_000, 600_000])),
        };
        (rng.below(within_ms), mishap)
    };
    (0..count).map(|_| one(rng)).collect()
}
