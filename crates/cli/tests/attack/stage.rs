//! The stage of an attack: a server with a tenant `default`, the attacker's tenant, and a meter of what others feel.

use crate::rig::{Place, Server, read_answer, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub struct Stage {
    pub place: Place,
    pub server: Server,
    /// Id of the attacker's tenant.
    pub tenant: String,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::at(Place::new())
    }

    /// Starts a server in the place, with a fresh tenant for the attacker.
    pub fn at(place: Place) -> Stage {
        let server = place.serve();
        Stage::with(place, server)
    }

    /// Makes a fresh tenant for the attacker at a server that runs.
    pub fn with(place: Place, server: Server) -> Stage {
        let (status, made) = server.post("/api/v1/tenants", &json!({ "name": "Attacker" }));
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let tenant = made["id"].as_str().unwrap().to_owned();
        Stage { place, server, tenant }
    }

    /// Returns a token of that role in the attacker's tenant.
    pub fn token(&self, role: &str) -> String {
        let body = json!({ "name": role, "role": role, "tenantId": self.tenant });
        let (status, made) = self.server.post("/api/v1/tokens", &body);
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["token"].as_str().unwrap().to_owned()
    }

    /// Sends a JSON request under a token; returns status and JSON.
    pub fn send(&self, token: &str, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        read_answer(self.server.bare(method, path).bearer_auth(token).json(body).send().unwrap())
    }

    /// Uploads a definition under a token; returns status and JSON.
    pub fn upload(&self, token: &str, text: &str) -> (StatusCode, Value) {
        let request = self.server.bare(Method::POST, "/api/v1/workflows").bearer_auth(token);
        read_answer(request.header("Content-Type", "application/yaml").body(text.to_owned()).send().unwrap())
    }

    /// Uploads a definition under a token and starts it; returns the execution.
    #[track_caller]
    pub fn start(&self, token: &str, definition: &Value) -> String {
        let (status, made) = self.upload(token, &definition.to_string());
        assert!(status.is_success(), "{made}");
        let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
        let (status, made) = self.send(token, Method::POST, &path, &json!({}));
        assert_eq!(status, StatusCode::ACCEPTED, "{made}");
        made["executionId"].as_str().unwrap().to_owned()
    }

    pub fn execution(&self, token: &str, id: &str) -> Value {
        let (status, execution) =
            self.send(token, Method::GET, &format!("/api/v1/executions/{id}"), &Value::Null);
        assert_eq!(status, StatusCode::OK, "{execution}");
        execution
    }

    /// Waits until the execution has ended.
    #[track_caller]
    pub fn ended(&self, token: &str, id: &str) -> Value {
        until("the execution ends", || {
            Some(self.execution(token, id)).filter(|execution| !execution["completedAt"].is_null())
        })
    }

    /// Starts the definition and returns code and message of the error that it ends with.
    #[track_caller]
    pub fn failure(&self, token: &str, definition: &Value) -> (String, String) {
        let ended = self.ended(token, &self.start(token, definition));
        assert_eq!(ended["status"], "failed", "{ended}");
        let text = |field: &str| ended["errors"][0][field].as_str().unwrap_or_default().to_owned();
        (text("code"), text("message"))
    }

    /// Resident memory of the server process in MiB.
    pub fn memory_mib(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most memory that the server process ever had, in MiB.
    pub fn peak_mib(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.process())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Kills the server as if the machine had lost its power, and starts it again.
    pub fn restarted(self) -> Stage {
        let Stage { place, server, tenant } = self;
        server.kill();
        Stage { server: place.serve(), place, tenant }
    }

    /// Runs a step of the tenant `default` and returns how long its execution took.
    #[track_caller]
    pub fn bystander_step(&self) -> Duration {
        let step =
            json!({ "id": "a", "type": "data", "config": { "query": "SELECT 1 AS one", "tables": {} } });
        let begun = Instant::now();
        let id =
            self.start(self.server.token(), &json!({ "name": "bystander", "nodes": [step], "edges": [] }));
        let ended = self.ended(self.server.token(), &id);
        assert_eq!(ended["status"], "completed", "{ended}");
        begun.elapsed()
    }

    /// Sends a request of the tenant `default` and returns how long its answer took.
    pub fn bystander(&self) -> Duration {
        let begun = Instant::now();
        assert_eq!(self.server.get("/api/v1/workflows").status(), StatusCode::OK);
        begun.elapsed()
    }
}
