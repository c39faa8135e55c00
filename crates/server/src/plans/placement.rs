//! Placement of an execution of a plan: its cluster, by name or by the affinity of the plan, and its runner group.

use crate::app::App;
use crate::database::DatabaseReader;
use crate::problem::{Detail, Problem};
use crate::routes::clusters::CLUSTERS;
use crate::routing::targets::LOCAL_CLUSTER;
use serde_json::{Map, Value};
use windlass_dialects::plan::{PlanCluster, PlanDocument};
use windlass_store::{Registry as _, RoutingTarget, TARGETS_MAX, TargetKind, Tenant};

/// Group that every tenant has.
const DEFAULT_GROUP: &str = "default";

/// Placement that a request for an execution asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacementRequest<'r> {
    pub plan: &'r PlanDocument,
    pub cluster: Option<&'r str>,
    pub runner: Option<&'r str>,
    pub params: &'r Map<String, Value>,
}

impl PlacementRequest<'_> {
    /// Returns the runner group, or adds what is wrong with it.
    pub(crate) fn runner(self, app: &App, tenant: &Tenant, wrong: &mut Vec<Detail>) -> Option<String> {
        let group = match (self.plan.runner.as_deref(), self.runner) {
            (Some(of_plan), Some(given)) if of_plan != given => {
                let message = format!("is `{given}`, but the plan sets `{of_plan}`; omit the field");
                wrong.push(Detail::new("spec.runner", message));
                return None;
            }
            (Some(group), _) | (None, Some(group)) => group,
            (None, None) => {
                wrong.push(Detail::new("spec.runner", "is required: the plan sets no runner group"));
                return None;
            }
        };
        if group != DEFAULT_GROUP && app.remote.groups.get(tenant, group).is_none() {
            let message = format!(
                "there is no runner group `{group}`; start a worker with `windlass worker --group {group}`, or create it \
                 with PUT /api/v1/runner-groups/{group}"
            );
            wrong.push(Detail::new("spec.runner", message));
            return None;
        }
        Some(group.to_owned())
    }

    /// Returns the cluster, or adds what is wrong with it.
    pub(crate) async fn cluster(
        self,
        app: &App,
        tenant: &Tenant,
        wrong: &mut Vec<Detail>,
    ) -> Result<Option<String>, Problem> {
        let resolved = match self.derived(app, tenant).await? {
            Ok(resolved) => resolved,
            Err(detail) => {
                wrong.push(detail);
                return Ok(None);
            }
        };
        let cluster = match (resolved, self.cluster) {
            (Derived::One(derived), Some(given)) if derived != given => {
                let message = format!("is `{given}`, but the parameters of the execution select `{derived}`");
                wrong.push(Detail::new("spec.cluster", message));
                return Ok(None);
            }
            (Derived::One(cluster), _) => cluster,
            (Derived::AnyOf(pattern, clusters), Some(given)) => {
                if !clusters.iter().any(|cluster| cluster == given) {
                    let message = format!("`{given}` is not a registered cluster that fits `{pattern}`");
                    wrong.push(Detail::new("spec.cluster", message));
                    return Ok(None);
                }
                given.to_owned()
            }
            (Derived::AnyOf(pattern, clusters), None) => {
                let message = match clusters.len() {
                    0 => format!("is required: no cluster that is ready fits `{pattern}`"),
                    _ => format!("is required: `{pattern}` fits {}", clusters.join(", ")),
                };
                wrong.push(Detail::new("spec.cluster", message));
                return Ok(None);
            }
            (Derived::Nothing, Some(given)) => given.to_owned(),
            (Derived::Nothing, None) => {
                wrong.push(Detail::new("spec.cluster", "is required: the plan does not determine it"));
                return Ok(None);
            }
        };
        if cluster == LOCAL_CLUSTER || CLUSTERS.find(app, tenant, &cluster).await?.is_some() {
            return Ok(Some(cluster));
        }
        let message =
            format!("there is no cluster `{cluster}`; register it with `windlass clusters put {cluster}`");
        wrong.push(Detail::new("spec.cluster", message));
        Ok(None)
    }

    /// Resolves the affinity of the plan.
    async fn derived(self, app: &App, tenant: &Tenant) -> Result<Result<Derived, Detail>, Problem> {
        let param = |name: &String| self.params.get(name).or_else(|| self.default_of(name)).cloned();
        let text = |name: &String| param(name).and_then(|value| value.as_str().map(str::to_owned));
        let target = match &self.plan.cluster {
            None => return Ok(Ok(Derived::Nothing)),
            Some(PlanCluster::FromCluster(name)) => {
                return Ok(Ok(text(name).map_or(Derived::Nothing, Derived::One)));
            }
            Some(PlanCluster::Pattern(pattern)) => return fitting(app, tenant, pattern).await.map(Ok),
            Some(PlanCluster::FromSandbox(name)) => {
                text(name).map(|target| (name, TargetKind::Sandbox, target))
            }
            Some(PlanCluster::FromRouteGroup(name)) => {
                text(name).map(|target| (name, TargetKind::RouteGroup, target))
            }
            Some(PlanCluster::FromAnyTarget(name)) => {
                param(name).and_then(|value| any_target(&value)).map(|(kind, target)| (name, kind, target))
            }
        };
        let Some((param, kind, name)) = target else { return Ok(Ok(Derived::Nothing)) };
        let (of, wanted) = (tenant.clone(), name.clone());
        let found = app.readers.of(tenant).look(move |reader| reader.target(&of, kind, &wanted)).await?;
        Ok(match found {
            Some(RoutingTarget { cluster, .. }) => Ok(cluster.map_or(Derived::Nothing, Derived::One)),
            None => {
                let kind = if kind == TargetKind::Sandbox { "sandbox" } else { "route group" };
                let message = format!("there is no {kind} `{name}`, which determines the cluster");
                Err(Detail::new(format!("spec.params.{param}"), message))
            }
        })
    }

    /// Returns the default of a parameter, which counts like a value.
    fn default_of(&self, name: &str) -> Option<&Value> {
        let params = self.plan.spec.get("params")?.as_array()?;
        params.iter().find(|param| param["name"] == name)?.get("default")
    }
}

/// Result of the affinity of a plan for the cluster.
enum Derived {
    Nothing,
    One(String),
    /// Clusters that fit a pattern; not exactly one of them is ready.
    AnyOf(String, Vec<String>),
}

fn any_target(value: &Value) -> Option<(TargetKind, String)> {
    let name = |field: &str| value.get(field)?.as_str().map(str::to_owned);
    let sandbox = name("sandbox").map(|name| (TargetKind::Sandbox, name));
    sandbox.or_else(|| Some((TargetKind::RouteGroup, name("routeGroup")?)))
}

/// Returns the only cluster that fits, if it is ready; otherwise the execution has to name one of those that fit.
async fn fitting(app: &App, tenant: &Tenant, pattern: &str) -> Result<Derived, Problem> {
    let of = tenant.clone();
    let look = move |reader: &mut DatabaseReader| reader.targets(&of, TargetKind::Cluster, None, TARGETS_MAX);
    let known = app.readers.of(tenant).look(look).await?;
    let known = known.into_iter().map(|cluster| (cluster.name, cluster.ready));
    let all: Vec<(String, bool)> = known.chain([(LOCAL_CLUSTER.to_owned(), true)]).collect();
    let fits: Vec<&(String, bool)> = all.iter().filter(|(name, _)| matches_glob(pattern, name)).collect();
    let mut ready = fits.iter().filter(|(_, is_ready)| *is_ready);
    Ok(match (ready.next(), ready.next()) {
        (Some((only, _)), None) if fits.len() == 1 => Derived::One(only.clone()),
        _ => Derived::AnyOf(pattern.to_owned(), fits.into_iter().map(|(name, _)| name.clone()).collect()),
    })
}

/// Reports whether a name fits a pattern in which `*` matches any characters. Both are short.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn a_star_matches_any_characters() {
        let cases = [
            ("eu", "eu", true),
            ("eu", "eu-1", false),
            ("eu-*", "eu-1", true),
            ("eu-*", "eu-", true),
            ("*-prod", "eu-prod", true),
            ("*-prod", "eu-prod-2", false),
            ("eu*prod*", "eu-1-prod-2", true),
            ("a*a", "a", false),
            ("*", "anything", true),
            ("", "", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches_glob(pattern, name), expected, "{pattern} {name}");
        }
    }
}
