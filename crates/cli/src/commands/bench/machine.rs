//! The machine on which a figure was measured.

use serde_json::{Value, json};
use std::fs::read_to_string;
use std::path::Path;

/// Describes processor, cores, kernel, load, and the filesystem of the folder.
pub fn describe(folder: &Path) -> Value {
    json!({
        "cpu": cpu(),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "kernel": word_of("/proc/sys/kernel/osrelease"),
        "filesystem": filesystem(folder),
        "load_average": read_to_string("/proc/loadavg").ok().as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok()),
    })
}

/// Returns the type of the filesystem that holds the folder, and its device.
pub fn filesystem(folder: &Path) -> String {
    let mounts = read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    holding(&mounts, &folder).unwrap_or_else(|| "unknown".to_owned())
}

/// Returns whether the filesystem is in memory: data that is synced there is not on a disk.
pub fn is_in_memory(filesystem: &str) -> bool {
    filesystem.starts_with("tmpfs") || filesystem.starts_with("ramfs")
}

/// Returns the longest mount point above the folder; of equal ones the last, which hides the others.
fn holding(mounts: &str, folder: &Path) -> Option<String> {
    let above = mounts.lines().filter_map(mount).filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, what)| what)
}

/// `36 35 98:0 /root /mount/point options - type device …`, some fields before the dash are optional.
fn mount(line: &str) -> Option<(&str, String)> {
    let point = line.split(' ').nth(4)?;
    let (_, after) = line.split_once(" - ")?;
    let mut words = after.split(' ');
    Some((point, format!("{} on {}", words.next()?, words.next()?)))
}

fn cpu() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn word_of(file: &str) -> String {
    read_to_string(file).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Returns the bytes of a process that are in RAM now.
pub fn resident(process: u32) -> anyhow::Result<u64> {
    let file = format!("/proc/{process}/status");
    let text = read_to_string(&file)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1_024).ok_or_else(|| anyhow::anyhow!("{file} has no VmRSS"))
}

/// Returns the time that a process has used on all cores.
pub fn cpu_time(process: u32) -> anyhow::Result<std::time::Duration> {
    let file = format!("/proc/{process}/stat");
    let text = read_to_string(&file)?;
    // The name of the program is in parentheses and may hold anything; user and system time are 12 and 13 fields after it.
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields.split(' ')).into_iter().flatten();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(std::time::Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Bytes that this process has sent to block devices so far.
pub fn bytes_written() -> Option<u64> {
    let text = read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
20 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
21 20 0:20 / /tmp rw - tmpfs none rw
22 20 254:1 / /data/disk rw master:2 shared:3 - xfs /dev/vdb rw
23 22 0:30 / /data/disk rw - btrfs /dev/vdc rw";

    #[test]
    fn the_filesystem_is_the_nearest_mount_above() {
        let check = |folder: &str, expected: &str| {
            assert_eq!(holding(MOUNTS, Path::new(folder)).as_deref(), Some(expected), "{folder}");
        };
        check("/home/a", "ext4 on /dev/vda");
        check("/tmp/b/c", "tmpfs on none");
        check("/tmpfiles", "ext4 on /dev/vda");
        check("/data/disk/d", "btrfs on /dev/vdc");
    }

    #[test]
    fn a_filesystem_in_memory_is_distinguished_from_a_disk() {
        assert!(is_in_memory(&holding(MOUNTS, Path::new("/tmp/x")).unwrap()));
        assert!(!is_in_memory(&holding(MOUNTS, Path::new("/home")).unwrap()));
    }
}
