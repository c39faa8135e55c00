//! Defaults of a new data folder: the tenant `default`, and the token of its owner.

use crate::app::App;
use crate::auth::{OWNER, OWNER_FILE, Role, owner_token};
use crate::host::now;
use crate::ids;
use serde_json::json;
use std::path::{Path, PathBuf};
use windlass_store::{Audit, Entry, StoredTenant, StoredToken, Tenant, TenantLimits};

/// Audit actor for actions that the server takes on its own.
const SERVER: &str = "server";

/// Creates what is missing, and returns the path of the owner's token if the file exists. The file is written before the
/// row: after a crash between them, the next start finds no token in the store and uses the one in the file.
pub(crate) async fn create_defaults(app: &App, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if !app.directory.has(&Tenant::default()) {
        let tenant = default_tenant();
        app.store_entries(vec![Entry::Tenant(Box::new(tenant.clone()))]).await?;
        app.directory.put_tenant(tenant);
    }
    let file = folder.join(OWNER_FILE);
    let is_wanted = !app.directory.has_tokens() || (app.settings.new_owner_token && !file.exists());
    if is_wanted {
        let (token, _) = owner_token(folder)?;
        let stored = owner(token.digest())?;
        let audit = Audit {
            tenant: Tenant::default(),
            at: stored.created_at,
            actor: SERVER.to_owned(),
            role: Role::Owner.name().to_owned(),
            action: "token.create".to_owned(),
            target: stored.id.clone(),
            details: json!({ "name": stored.name, "role": stored.role }),
        };
        app.store_entries(vec![Entry::Token(Box::new(stored.clone())).audited(audit)]).await?;
        app.directory.put_token(stored)?;
    }
    Ok(Some(file).filter(|file| file.exists()))
}

pub(crate) fn default_tenant() -> StoredTenant {
    let (id, at) = (Tenant::default(), now());
    let name = id.to_string();
    StoredTenant { id, name, limits: TenantLimits::default(), programs: true, created_at: at, updated_at: at }
}

fn owner(digest: [u8; 32]) -> anyhow::Result<StoredToken> {
    let id = ids::fresh("user_")?;
    Ok(StoredToken {
        name: "owner".to_owned(),
        person: Some(OWNER.to_owned()),
        created_by: SERVER.to_owned(),
        ..StoredToken::new(id, digest, Tenant::default(), Role::Owner.name(), now())
    })
}
