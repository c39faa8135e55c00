//! The vocabulary of the language: the keys of every map, tiers, port families and their capabilities. The parser
//! refuses a key that is not here, and the JSON Schema is generated from these tables.

use super::model::Tier;
use crate::read::{Key, key};

pub(super) const ROOT: &[Key] = &[
    key("schemaVersion", "Version of the document: 1, or 2, in which every action names its capability"),
    key("workflowId", "Id of the workflow; other definitions start it by this name"),
    key("workspaceId", "Workspace that the document belongs to; for people and other programs"),
    key("name", "Name of the workflow"),
    key("description", "Text for people"),
    key("version", "Number of the version for people; stored versions are counted on their own"),
    key("active", "`false`: the workflow is stored and cannot be started"),
    key(
        "executionTier",
        "How much people take part: Auto, Assisted, HumanApprove or ManualOnly; Auto if it is left out",
    ),
    key("timeoutMs", "Time for the whole run; a run that takes longer fails and is compensated"),
    key(
        "inputs",
        "JSON Schema of the inputs of a run; `default` of a property is used when an input is left out",
    ),
    key("policy", "Separation of duties: `sodConstraints`"),
    key("adapters", "Tools that operations are bound to"),
    key("actions", "The actions, in the order of their `order`"),
];

pub(super) const ACTION: &[Key] = &[
    key("actionId", "Name of the action, unique in the workflow, without a colon"),
    key("order", "Place of the action: 1, 2, 3, …"),
    key("description", "Text for people"),
    key("portFamily", "Family of systems that the operation belongs to"),
    key("operation", "Operation that is called, as entity:verb"),
    key("capability", "Capability of the port family; it is the operation if `operation` is left out"),
    key("inputSchemaRef", "Reference to a schema of the input, for other programs"),
    key("outputSchemaRef", "Reference to a schema of the output, for other programs"),
    key("executionTierOverride", "Tier of this action; never less strict than the tier of the workflow"),
    key("input", "Arguments of the operation: templates over `inputs` and `actions.ID.output`"),
    key("dependsOn", "Actions that must have succeeded; on any action it makes the workflow a graph"),
    key("retryPolicy", "Number of attempts, and the delays between them"),
    key("timeoutMs", "Time for one attempt; 300000 if it is left out"),
    key("completionMode", "`manual`: a person confirms the end after the operation was called"),
    key("completionDeadlineMs", "Time that a person has to confirm the end; the action fails afterwards"),
    key("sideEffecting", "Whether the operation changes something; true unless it ends in `:read`"),
    key("compensation", "Operation that undoes this one when the run fails later"),
];

pub(super) const RETRY: &[Key] = &[
    key("maxAttempts", "Number of attempts, including the first: 1 to 10"),
    key("initialBackoffMs", "Delay before the second attempt"),
    key("backoffMultiplier", "Factor between one delay and the next"),
    key("maxBackoffMs", "Maximum delay"),
    key("retryableErrors", "Classes and codes of errors that are retried, in place of the usual ones"),
];

pub(super) const COMPENSATION: &[Key] = &[
    key("compensationOperation", "Operation that is called, as entity:verb"),
    key("compensationInput", "Its arguments: templates over `inputs` and `actions.ID.output`"),
    key("compensationInputSchema", "JSON Schema that the arguments must fit before the operation is called"),
    key("timeoutMs", "Time for one attempt; 300000 if it is left out"),
    key("retryPolicy", "Number of attempts, and the delays between them"),
];

pub(super) const POLICY: &[Key] =
    &[key("sodConstraints", "Rules about who may approve and complete actions")];

pub(super) const CONSTRAINT: &[Key] = &[
    key("kind", "MakerChecker, DistinctApprovers, IncompatibleDuties or SpecialistApproval"),
    key("minimumApprovers", "DistinctApprovers: number of different people"),
    key("dutyKeys", "IncompatibleDuties: operations of which one person may perform one"),
    key("requiredRoles", "SpecialistApproval: roles of which an approver must have one"),
    key("rationale", "SpecialistApproval: the reason, for people"),
];

pub(super) const TIERS: [(&str, Tier); 4] = [
    ("Auto", Tier::Auto),
    ("Assisted", Tier::Assisted),
    ("HumanApprove", Tier::HumanApprove),
    ("ManualOnly", Tier::ManualOnly),
];

/// Values of `completionMode`: whether a person confirms the end.
pub(super) const COMPLETION_MODES: [(&str, bool); 2] = [("auto", false), ("manual", true)];

/// A family of systems, with the capabilities that its actions may name; separated by spaces, empty if any is allowed.
pub(super) struct PortFamily {
    pub(super) name: &'static str,
    capabilities: &'static str,
}

impl PortFamily {
    pub(super) fn named(name: &str) -> Option<&'static PortFamily> {
        PORT_FAMILIES.iter().find(|family| family.name == name)
    }

    pub(super) fn capabilities(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.capabilities.split_whitespace()
    }

    pub(super) fn allows(&self, capability: &str) -> bool {
        self.capabilities.is_empty() || self.capabilities().any(|known| known == capability)
    }
}

const fn family(name: &'static str, capabilities: &'static str) -> PortFamily {
    PortFamily { name, capabilities }
}

pub(super) const PORT_FAMILIES: &[PortFamily] = &[
    family(
        "FinanceAccounting",
        "account:read journal:read journal:write invoice:read invoice:write bill:read bill:write vendor:read \
         reconciliation:write report:read",
    ),
    family(
        "PaymentsBilling",
        "charge:read charge:write refund:write subscription:read subscription:write invoice:read invoice:write \
         payment-method:read payout:write balance:read",
    ),
    family(
        "ProcurementSpend",
        "po:read po:write po:approve expense:read expense:write expense:approve vendor:read vendor:write rfq:write \
         contract:read",
    ),
    family(
        "HrisHcm",
        "employee:read employee:write department:read position:read time-off:read time-off:write benefit:read org:read",
    ),
    family(
        "Payroll",
        "payroll:read payroll:write payroll:approve paystub:read tax:read schedule:read deduction:read earning:read \
         contractor:read",
    ),
    family(
        "CrmSales",
        "party:read party:write company:read company:write opportunity:read opportunity:write pipeline:read \
         activity:read activity:write note:read note:write",
    ),
    family(
        "CustomerSupport",
        "ticket:read ticket:write ticket:assign agent:read comment:read comment:write tag:read tag:write kb:read \
         sla:read csat:read",
    ),
    family(
        "ItsmItOps",
        "incident:read incident:write change:read change:write change:approve asset:read asset:write cmdb:read \
         problem:read problem:write sr:read",
    ),
    family(
        "IamDirectory",
        "user:read user:write group:read group:write role:read role:write app:read auth:write mfa:write audit:read",
    ),
    family(
        "SecretsVaulting",
        "secret:read secret:write secret:rotate cert:read cert:write crypto:read crypto:write key:read key:write \
         audit:read policy:write",
    ),
    family(
        "MarketingAutomation",
        "contact:read contact:write list:read list:write campaign:read campaign:write campaign:send stats:read \
         automation:read automation:write form:read",
    ),
    family(
        "AdsPlatforms",
        "campaign:read campaign:write ad-group:read ad-group:write ad:read ad:write stats:read audience:read \
         audience:write budget:read budget:write keyword:read",
    ),
    family(
        "CommsCollaboration",
        "message:read message:write channel:read channel:write user:read email:read email:write meeting:read \
         meeting:write calendar:read calendar:write file:read file:write",
    ),
    family(
        "ProjectsWorkMgmt",
        "project:read project:write task:read task:write task:assign board:read sprint:read sprint:write \
         milestone:read comment:read comment:write label:read time:read time:write",
    ),
    family(
        "DocumentsEsign",
        "document:read document:write folder:read folder:write share:write permission:read permission:write \
         esign:read esign:write template:read template:write audit:read",
    ),
    family(
        "AnalyticsBi",
        "dashboard:read report:read report:write report:export query:read query:write datasource:read \
         datasource:write dataset:read dataset:write metric:read user:read share:write",
    ),
    family(
        "MonitoringIncident",
        "alert:read alert:write incident:read incident:write schedule:read schedule:write escalation:read \
         service:read statuspage:write maintenance:read notification:write",
    ),
    family(
        "ComplianceGrc",
        "control:read control:write risk:read risk:write policy:read policy:write audit:read audit:write \
         finding:read finding:write evidence:read evidence:write framework:read framework:write",
    ),
    family(
        "RoboticsActuation",
        "robot:execute_action robot:cancel_action robot:stop robot:estop_request robot:get_state \
         robot:get_diagnostics actuator:set_state actuator:get_state",
    ),
    // It has no list of capabilities: any operation is allowed.
    family("SoftwareDev", ""),
];
