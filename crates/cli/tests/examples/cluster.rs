//! A PostgreSQL server for one test; it ends with it.

use crate::binary::{Place, until};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The server refuses to run as root: then it runs as an account that owns nothing.
const ACCOUNT: &str = "nobody";

pub struct Cluster {
    pub port: u16,
    server: Child,
}

impl Cluster {
    pub fn start(place: &Place) -> Cluster {
        let data = place.path("postgres");
        fs::create_dir(&data).expect("a folder");
        if is_root() {
            // The folder above it is for its owner alone.
            done(Command::new("chmod").arg("711").arg(data.parent().expect("a parent")));
            done(Command::new("chown").arg(ACCOUNT).arg(&data));
        }
        let bin = binaries();
        let new = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        done(demoted(&bin.join("initdb")).args(new).arg(data.join("cluster")));
        let port = free_port();
        let mut server = demoted(&bin.join("postgres"));
        server.arg("-D").arg(data.join("cluster")).arg("-k").arg(&data).args(["-p", &port.to_string()]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server runs");
        until("the server answers", || {
            let mut ready = Command::new(bin.join("pg_isready"));
            ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
            ready.status().expect("pg_isready runs").success().then_some(())
        });
        Cluster { port, server }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn demoted(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ACCOUNT, "--regid", "65534", "--clear-groups"]).arg(program);
    command
}

fn done(command: &mut Command) {
    let told = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(told.status.success(), "{command:?}: {}", String::from_utf8_lossy(&told.stderr));
}

fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("an address").port()
}

/// On the path, or where Debian puts each version.
fn binaries() -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(debian.map(|entry| entry.path().join("bin")));
    let found = all.into_iter().find(|dir| dir.join("initdb").exists());
    let found = found.expect("no PostgreSQL server is installed; ./scripts/test installs one");
    // The others are beside the program, not beside a link to it.
    let program = found.join("initdb").canonicalize().expect("it is there");
    program.parent().expect("a folder").to_owned()
}
