//! An HTTP server in a process of its own, which writes down what it is asked and fails as often as a test asks for.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SERVER: &str = r#"
import http.server, json, sys
log, fails = sys.argv[1], int(sys.argv[2])
class Books(http.server.BaseHTTPRequestHandler):
    def answer(self):
        global fails
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        with open(log, "a") as lines:
            seen = {"method": self.command, "path": self.path, "body": body, "headers": {k.lower(): v for k, v in self.headers.items()}}
            lines.write(json.dumps(seen) + "\n")
        fails, status = fails - 1, 503 if fails > 0 else 200
        text = b'{"invoiceId": "in_7"}'
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_GET = do_POST = do_PUT = do_DELETE = answer
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Books)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Dropping it ends the process.
pub struct Books {
    process: Child,
    url: String,
}

impl Books {
    /// Starts the server; its first `fails` answers are 503. Each request is a line of the file.
    pub fn open(log: &std::path::Path, fails: u32) -> Books {
        let mut command = Command::new("python3");
        command.args(["-c", SERVER]).arg(log).arg(fails.to_string()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3 runs");
        let mut line = String::new();
        let out = process.stdout.as_mut().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Books { process, url: format!("http://127.0.0.1:{}", line.trim()) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the requests, in order.
pub fn requests(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
