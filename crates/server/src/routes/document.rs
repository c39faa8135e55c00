//! What every operation of the OpenAPI document has, said once.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{HeaderBuilder, OpenApi, RefOr, Required, Response};

/// Fills in what the routes leave out.
pub fn complete(document: &mut OpenApi) {
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

/// A description is not optional, and the names of statuses say enough.
fn complete_response(status: &str, response: &mut Response) {
    if response.description.is_empty() {
        let known = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        response.description =
            known.and_then(|status| status.canonical_reason()).unwrap_or("The answer").to_owned();
    }
    if ["429", "503"].contains(&status) {
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
            .description(Some("Seconds after which it is worth asking again"))
            .build();
        response.headers.insert("Retry-After".to_owned(), RefOr::T(header));
    }
}

fn tenant_header() -> Parameter {
    ParameterBuilder::new()
        .name("X-Tenant-ID")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The tenant to act for; for owners and admins of the tenant `default`"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}
