//! A server that speaks the protocol of S3, in a process of its own: moto. It can be out of reach for a time, and keeps what it has.

use crate::rig::Place;
use reqwest::StatusCode;
use reqwest::blocking::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SERVER: &str = r#"
import logging, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
app, port, server = DomainDispatcherApplication(create_backend_app), 0, None
for line in sys.stdin:
    if line.strip() == "up":
        server = make_server("127.0.0.1", port, app, threaded=True)
        port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
    else:
        server.shutdown()
        server.server_close()
    print(port, flush=True)
"#;

pub const NAME: &str = "artifacts-of-tests";
pub const SECRET_KEY: &str = "hunter2-of-the-bucket";

/// A server with an empty bucket. Dropping it ends the process.
pub struct Bucket {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    port: String,
    client: Client,
}

impl Bucket {
    pub fn open() -> Bucket {
        let program = std::env::var("WINDLASS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut process = Command::new(&program)
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        // Signatures are not checked, but only requests with one may read private objects.
        let signed = "AWS4-HMAC-SHA256 Credential=key-of-tests/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(signed))]);
        let client = Client::builder().no_proxy().default_headers(headers).build().unwrap();
        let mut bucket = Bucket { process, commands, answers, port: String::new(), client };
        bucket.port = bucket.command("up");
        assert!(
            !bucket.port.is_empty(),
            "{program} has no moto: pip install 'moto[server]', or run ./scripts/test, which does it"
        );
        assert_eq!(bucket.client.put(bucket.url("")).send().unwrap().status(), StatusCode::OK);
        bucket
    }

    fn command(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Refuses connections from now on.
    pub fn close(&mut self) {
        self.command("down");
    }

    /// Accepts connections again, with what it had.
    pub fn reopen(&mut self) {
        assert_eq!(self.command("up"), self.port);
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn url(&self, key: &str) -> String {
        format!("{}/{NAME}/{key}", self.endpoint())
    }

    /// A folder whose servers copy artifacts here.
    pub fn place(&self) -> Place {
        self.named(&format!("s3://{NAME}/some/prefix"))
    }

    /// The same with another name of the place.
    pub fn named(&self, place: &str) -> Place {
        Place::new()
            .with(&["--artifact-retry", "20ms"])
            .variable("WINDLASS_ARTIFACTS", place)
            .variable("AWS_ENDPOINT_URL", &self.endpoint())
            .variable("AWS_ACCESS_KEY_ID", "key-of-tests")
            .variable("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .variable("AWS_REGION", "eu-north-1")
    }

    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        let response = self.client.get(self.url(key)).send().unwrap();
        response.status().is_success().then(|| response.bytes().unwrap().to_vec())
    }

    pub fn replace(&self, key: &str, bytes: &[u8]) {
        let response = self.client.put(self.url(key)).body(bytes.to_vec()).send().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }

    /// Keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        let text = self.client.get(self.url("?list-type=2")).send().unwrap().text().unwrap();
        let after = text.split("<Key>").skip(1);
        after.filter_map(|rest| Some(rest.split_once("</Key>")?.0.to_owned())).collect()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
