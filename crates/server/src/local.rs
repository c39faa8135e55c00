//! The routes in the process of a command, without a socket: in a folder that nobody holds a command asks what it asks
//! of a server.

use crate::app::{App, Parts};
use crate::auth::{Directory, Role, Token};
use crate::first::default_tenant;
use crate::host::{Embedded, Setup, now};
use crate::hub::Hub;
use crate::readers::Readers;
use crate::routes;
use crate::settings::{DATA, Settings};
use anyhow::Context;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;
use windlass_engine::Folder;
use windlass_store::sqlite::Sqlite;
use windlass_store::{StoredToken, Tenant};

/// Whoever can write to the data folder is its owner.
const OWNER: &str = "owner";

pub struct Local {
    router: Router,
    embedded: Embedded,
    /// Known to this process alone.
    token: Token,
    runtime: Runtime,
}

impl Local {
    pub fn start(folder: Folder, setup: Setup) -> anyhow::Result<Local> {
        let data = folder.path().display().to_string();
        let settings = Settings::gather(&BTreeMap::from([(DATA, data)]), |_| None)?;
        let hub = Arc::new(Hub::default());
        let embedded = Embedded::in_folder(folder, Setup { hub: Some(hub.clone()), ..setup })?;
        let store = Folder::store(embedded.folder());
        let directory = Directory::load(&mut Sqlite::read_only(&store)?)?;
        let token = Token::random().context("the system gives no random bytes")?;
        if !directory.has(&Tenant::default()) {
            directory.put_tenant(default_tenant());
        }
        directory.put_token(owner(&token))?;
        let readers = Readers::start_one(&store)?;
        let (engine, secrets, rights) = (embedded.handle(), embedded.vault(), embedded.rights());
        let storage = embedded.storage();
        let app = App::new(Parts {
            engine,
            readers,
            settings,
            directory,
            jwt: None,
            secrets,
            rights,
            storage,
            seal: embedded.seal(),
            hub,
            traces: None,
            pulse: embedded.pulse(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Local { router: routes::router(Arc::new(app)), embedded, token, runtime })
    }

    /// The status and the body of the answer.
    pub fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> anyhow::Result<(u16, String)> {
        let bearer = format!("Bearer {}", self.token.text());
        let mut request = Request::builder().method(method).uri(url).header(header::AUTHORIZATION, bearer);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body))?;
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await?;
            let (parts, body) = response.into_parts();
            let bytes = to_bytes(body, usize::MAX).await?;
            Ok((parts.status.as_u16(), String::from_utf8(bytes.into())?))
        })
    }

    /// The engine goes on without the routes.
    pub fn into_embedded(self) -> Embedded {
        self.embedded
    }
}

fn owner(token: &Token) -> StoredToken {
    StoredToken {
        id: OWNER.to_owned(),
        tenant: Tenant::default(),
        name: OWNER.to_owned(),
        role: Role::Owner.name().to_owned(),
        digest: token.digest(),
        created_by: OWNER.to_owned(),
        created_at: now(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("embedded", &self.embedded).finish_non_exhaustive()
    }
}
