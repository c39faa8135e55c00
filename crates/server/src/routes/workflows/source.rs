//! A definition as a body: YAML or JSON, of any dialect.

use crate::app::App;
use crate::body::{collect, is_flat_enough, media_type};
use crate::plans::{Hydrated, hydrate};
use crate::problem::Problem;
use axum::extract::{FromRequest, Request};
use std::sync::Arc;
use windlass_dialects::{Compiled, Outside, compile_for, compile_marked};
use windlass_store::Tenant;

const YAML: [&str; 5] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"];

/// The text of a definition.
#[derive(Debug)]
pub(crate) struct Text(pub String);

impl FromRequest<Arc<App>> for Text {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let kind = media_type(&parts.headers);
        let is_json = kind.as_deref() == Some("application/json");
        if !is_json && !kind.as_deref().is_some_and(|kind| YAML.contains(&kind)) {
            let shown = kind.as_deref().unwrap_or("nothing");
            let message = format!(
                "the media type {shown} is not supported; send application/json, application/yaml, text/yaml or text/plain"
            );
            return Err(Problem::unsupported(message));
        }
        let bytes = collect(body, app).await?;
        if is_json {
            is_flat_enough(&bytes)?;
        }
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Text(text)),
            Err(error) => {
                let place = error.utf8_error().valid_up_to();
                Err(Problem::bad_request(format!("the definition is not UTF-8 text: see byte {place}")))
            }
        }
    }
}

/// Compiles the definition as it will be stored: a literal secret in it gets a name that no other value of the tenant
/// has.
pub(crate) async fn storable(app: &App, tenant: &Tenant, text: String) -> Result<Compiled, Problem> {
    let Hydrated { text, refused } = hydrate(app, tenant, text).await?;
    let (vault, of, bytes) = (app.secrets.clone(), tenant.clone(), text.len());
    let adapters = app.versions.adapters().clone();
    let compile_storable = move || {
        let outside = Outside::Known(&adapters);
        let compiled = compile_for(&text, outside);
        if compiled.literals.is_empty() {
            return Ok(compiled.refused_for(refused));
        }
        let marks = vault.with(|vault| vault.marks(&of))?;
        Ok(compile_marked(&text, &marks, outside).refused_for(refused))
    };
    app.compiling.run(tenant, bytes, compile_storable).await?
}

/// Compiles on a thread for blocking work.
pub(crate) async fn compiled(app: &App, tenant: &Tenant, text: String) -> Result<Compiled, Problem> {
    let Hydrated { text, refused } = hydrate(app, tenant, text).await?;
    let (adapters, bytes) = (app.versions.adapters().clone(), text.len());
    let compile = move || compile_for(&text, Outside::Known(&adapters)).refused_for(refused);
    app.compiling.run(tenant, bytes, compile).await
}
