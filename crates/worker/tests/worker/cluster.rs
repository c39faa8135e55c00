//! A PostgreSQL server of the tests' own: made when the first test asks for it, gone with the test program.

use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Longer than a server takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Cluster {
    pub port: u16,
    pub sockets: PathBuf,
    /// Process whose standard input is open as long as the test program lives. However the program ends, the server and its
    /// files are removed.
    _keeper: Child,
}

/// Runs the server until the pipe is closed, then ends it and clears away. A server that has just begun hears the first
/// signal only, one that waits for its clients the second.
const KEEPER: &str = r#"dir=$1; shift
"$@" >"$dir/log" 2>&1 &
server=$!
cat >/dev/null
kill -TERM $server; sleep 1; kill -QUIT $server; wait $server; rm -rf "$dir""#;

const ACCESS: &str = "local all all trust
host all keyed 127.0.0.1/32 scram-sha-256
hostssl all sealed 127.0.0.1/32 trust
host all sealed 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
";

/// An account of the system that owns nothing: the server refuses to run as root.
const ACCOUNT: &str = "nobody";

pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(Cluster::start)
}

impl Cluster {
    fn start() -> Cluster {
        let dir = tempfile::Builder::new().prefix("windlass-postgres-").tempdir().unwrap().keep();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let (data, sockets) = (dir.join("data"), dir.join("sockets"));
        fs::create_dir(&sockets).unwrap();
        fs::create_dir(&data).unwrap();
        if is_root() {
            done(Command::new("chown").arg(ACCOUNT).args([&data, &sockets]));
        }
        let bin = binaries();
        done(
            demoted(&bin.join("initdb"))
                .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
                .arg(&data),
        );
        fs::write(data.join("pg_hba.conf"), ACCESS).unwrap();
        done(demoted(Path::new("openssl")).current_dir(&data).args(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout server.key -out server.crt".split(' '),
        ));
        let port = free_port();
        let mut server = demoted(&bin.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(&sockets).args(["-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "ssl=on",
            "max_connections=50",
            "deadlock_timeout=100ms",
        ] {
            server.args(["-c", setting]);
        }
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&dir).arg(server.get_program()).args(server.get_args());
        let keeper =
            keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Cluster { port, sockets, _keeper: keeper };
        cluster.wait(&bin, &dir);
        cluster.sql(
            &bin,
            "CREATE ROLE keyed LOGIN PASSWORD 's3cret'; CREATE ROLE sealed LOGIN; CREATE DATABASE other",
        );
        cluster
    }

    fn wait(&self, bin: &Path, dir: &Path) {
        let began = Instant::now();
        while !self.client(&bin.join("pg_isready")).stdout(Stdio::null()).status().unwrap().success() {
            assert!(began.elapsed() < PATIENCE, "{}", fs::read_to_string(dir.join("log")).unwrap());
            thread::yield_now();
        }
    }

    fn sql(&self, bin: &Path, text: &str) {
        for statement in text.split(';') {
            done(self.client(&bin.join("psql")).args(["-q", "-c", statement]));
        }
    }

    fn client(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("-h").arg(&self.sockets).args(["-p", &self.port.to_string(), "-U", "postgres"]);
        command
    }

    /// The fields that lead here.
    pub fn place(&self) -> Value {
        json!({ "host": "127.0.0.1", "port": self.port, "user": "postgres", "database": "postgres" })
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
    let finished = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(finished.status.success(), "{command:?}: {}", String::from_utf8_lossy(&finished.stderr));
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Returns the folder of the programs: on the path, or where Debian installs each version.
fn binaries() -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain(debian).find(|dir| dir.join("initdb").exists());
    let found = found.expect("no PostgreSQL server is installed; ./scripts/test installs one");
    // The other programs are in the folder of the program itself, not in that of a link to it.
    found.join("initdb").canonicalize().unwrap().parent().unwrap().to_owned()
}
