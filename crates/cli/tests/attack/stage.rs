//! The stage of an attack: a server with a tenant `default`, the attacker's tenant, and a meter of what others feel.

use crate::rig::{Place, Server, told};
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
        told(self.server.bare(method, path).bearer_auth(token).json(body).send().unwrap())
    }

    /// Uploads a definition under a token; returns status and JSON.
    pub fn upload(&self, token: &str, text: &str) -> (StatusCode, Value) {
        let request = self.server.bare(Method::POST, "/api/v1/workflows").bearer_auth(token);
        told(request.header("Content-Type", "application/yaml").body(text.to_owned()).send().unwrap())
    }

    /// Resident memory of the server process in MiB.
    pub fn memory_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.process())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    /// Sends a request of the tenant `default` and returns how long its answer took.
    pub fn bystander(&self) -> Duration {
        let begun = Instant::now();
        assert_eq!(self.server.get("/api/v1/workflows").status(), StatusCode::OK);
        begun.elapsed()
    }
}
