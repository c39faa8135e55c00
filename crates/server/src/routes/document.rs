//! Parts of the OpenAPI document that all operations share.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{HeaderBuilder, OpenApi, RefOr, Required, Response};

/// Adds the shared parts to every operation.
pub(crate) fn complete(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        operations(item).for_each(complete_operation);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn complete_operation(operation: &mut Operation) {
    if operation.security.is_some() {
        operation.parameters.get_or_insert_default().push(RefOr::T(tenant_header()));
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            complete_response(status, response);
        }
    }
}

/// Adds the required description: by default the name of the status.
fn complete_response(status: &str, response: &mut Response) {
    if response.description.is_empty() {
        let known = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        response.description =
            known.and_then(|status| status.canonical_reason()).unwrap_or("The response").to_owned();
    }
    if ["429", "503"].contains(&status) {
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
            .description(Some("Seconds to wait before a retry"))
            .build();
        response.headers.insert("Retry-After".to_owned(), RefOr::T(header));
    }
}

fn tenant_header() -> Parameter {
    ParameterBuilder::new()
        .name("X-Tenant-ID")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Tenant to act for; requires the role owner or admin in the tenant `default`"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).min_length(Some(1))))
        .build()
}
