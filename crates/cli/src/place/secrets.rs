//! Secrets, wherever they are.

use super::Place;
use crate::data::Data;
use crate::exit::Usage;
use reqwest::Method;
use serde_json::{Value, json};
use windlass_engine::Folder;
use windlass_secrets::Weakness;
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::vault::LocalVault;
use windlass_store::{StoredSecret, Tenant};
use windlass_views::time;

impl Place {
    /// What is known of it then; never its value.
    pub fn set_secret(&self, name: &str, value: &str) -> anyhow::Result<Value> {
        match self {
            Place::Folder(data) => {
                let mut vault = LocalVault::make(data.folder(), EngineSecrets::from_environment())?;
                let mut set = as_json(&vault.set(&Tenant::default(), name, value, None)?);
                if let Some(weakness) = Weakness::of(value) {
                    set["warnings"] = json!([weakness.to_string()]);
                }
                Ok(set)
            }
            Place::Server(server) => {
                Ok(server.send(Method::PUT, &["secrets", name], &json!({ "value": value }))?)
            }
        }
    }

    /// In the order of their names.
    pub fn secrets(&self) -> anyhow::Result<Vec<Value>> {
        match self {
            Place::Folder(data) => Ok(vault(data)?.list(&Tenant::default())?.iter().map(as_json).collect()),
            Place::Server(server) => match server.get(&["secrets"], &[])?["secrets"].take() {
                Value::Array(secrets) => Ok(secrets),
                _ => Ok(Vec::new()),
            },
        }
    }

    /// Whether it was there.
    pub fn delete_secret(&self, name: &str) -> anyhow::Result<bool> {
        match self {
            Place::Folder(data) => vault(data)?.delete(&Tenant::default(), name, None),
            Place::Server(server) => match server.text(server.asked(Method::DELETE, &["secrets", name])) {
                Ok(_) => Ok(true),
                Err(error) if error.is_missing() => Ok(false),
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// The vault of a folder that is there.
pub fn vault(data: &Data) -> anyhow::Result<LocalVault> {
    if !Folder::store(data.folder()).exists() {
        let what = format!("there are no secrets in {}", data.folder().display());
        let hint = "`windlass secrets set NAME` makes the folder; another one is named with --data DIR";
        return Err(Usage::new(what).hint(hint).into());
    }
    LocalVault::of(data.folder(), EngineSecrets::from_environment())
}

fn as_json(secret: &StoredSecret) -> Value {
    json!({
        "name": secret.name,
        "version": secret.version,
        "keyId": secret.key,
        "createdAt": time(secret.created_at),
        "updatedAt": time(secret.updated_at),
    })
}
