//! `/api/v1/webhook-deliveries`: webhook events and the results of their deliveries.

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::host::now;
use crate::ids;
use crate::problem::Problem;
use crate::routes::paging::{Paged, Pagination};
use crate::routes::shared::Refusals;
use crate::webhooks::delivery::{message_id, of_message_id};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_store::{Applied, DeliveryQuery, DeliveryState, Entry, Outbox, StoredDelivery};
use windlass_views::{execution_id, time};

const TAG: &str = "webhooks";
const LIST: Paged = Paged { name: "deliveries", usual: 20, most: 100 };

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct DeliveryParams {
    execution_id: Option<String>,
    #[param(inline)]
    status: Option<DeliveryStatus>,
    /// Name of the event: `execution.completed`, …
    event: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryStatus {
    Pending,
    Delivered,
    GivenUp,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deliveries {
    /// Newest first.
    deliveries: Vec<Delivery>,
    pagination: Pagination,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delivery {
    /// Value of the header `webhook-id`.
    id: String,
    execution_id: String,
    url: String,
    event: String,
    /// Number of the event within its execution, from 1.
    sequence: u64,
    /// `pending`, `delivered` or `given_up`.
    status: String,
    attempts: u32,
    #[schema(format = DateTime)]
    next_attempt_at: Option<String>,
    /// Status of the last response of the receiver.
    response_status: Option<u16>,
    /// Reason why the last attempt failed.
    error: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// Body of the request, without its signature.
    #[schema(value_type = Object)]
    body: Value,
}

impl From<StoredDelivery> for Delivery {
    fn from(row: StoredDelivery) -> Delivery {
        Delivery {
            id: message_id(row.execution, row.delivery.number),
            execution_id: execution_id(row.execution),
            url: row.url,
            event: row.delivery.event,
            sequence: row.delivery.number,
            status: row.state.name().to_owned(),
            attempts: row.attempts,
            next_attempt_at: row.due.map(time),
            response_status: row.answer,
            error: row.error,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
            body: serde_json::from_str(&row.delivery.body).unwrap_or_default(),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_deliveries)).routes(routes!(redeliver))
}

/// List deliveries, the newest first.
#[utoipa::path(get, path = "/api/v1/webhook-deliveries", tag = TAG, security(("bearer" = [])), params(DeliveryParams),
    responses((status = 200, body = Deliveries), Refusals))]
async fn list_deliveries(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(params): Params<DeliveryParams>,
) -> Result<Json<Deliveries>, Problem> {
    caller.may(Permission::View)?;
    let limit = LIST.limit(params.limit)?;
    let wrong = |_| Problem::invalid("executionId", "must be the id of an execution");
    let execution = params.execution_id.as_deref().map(ids::execution).transpose().map_err(wrong)?;
    let query = DeliveryQuery {
        tenant: caller.tenant,
        execution,
        number: None,
        state: params.status.map(|status| match status {
            DeliveryStatus::Pending => DeliveryState::Pending,
            DeliveryStatus::Delivered => DeliveryState::Delivered,
            DeliveryStatus::GivenUp => DeliveryState::GivenUp,
        }),
        event: params.event,
        before: LIST.place(params.cursor.as_deref(), |text| text.parse().ok())?,
        limit: limit + 1,
    };
    let mut found = app.readers.of(&query.tenant).look(move |reader| reader.deliveries(&query)).await?;
    let pagination = LIST.cut(&mut found, limit, |last| last.place);
    Ok(Json(Deliveries { deliveries: found.into_iter().map(Delivery::from).collect(), pagination }))
}

/// Send a delivery again, with the same id. Pending deliveries of its execution are sent first.
#[utoipa::path(post, path = "/api/v1/webhook-deliveries/{deliveryId}/redeliver", tag = TAG, security(("bearer" = [])),
    params(("deliveryId" = String, Path, description = "`msg_…`, as in the header `webhook-id`")),
    responses((status = 202, body = Delivery), Refusals))]
async fn redeliver(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Delivery>), Problem> {
    caller.may(Permission::Execute)?;
    let missing = || Problem::not_found("delivery", &id);
    let (execution, number) = of_message_id(&id).ok_or_else(missing)?;
    let tenant = caller.tenant.clone();
    let entry = Entry::Redeliver { tenant: tenant.clone(), execution, number, at: now() };
    let audit = caller.audit_entry("webhook-delivery.redeliver", &id, json!({}));
    if app.store_entries(vec![entry.audited(audit)]).await?[..] != [Applied::Done] {
        return Err(missing());
    }
    app.hub.mark(execution);
    let query = DeliveryQuery {
        tenant,
        execution: Some(execution),
        number: Some(number),
        state: None,
        event: None,
        before: None,
        limit: 1,
    };
    let found = app.readers.of(&query.tenant).look(move |reader| reader.deliveries(&query)).await?;
    let delivery = found.into_iter().next().map(Delivery::from).ok_or_else(missing)?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}
