-- The indexes of tenants and of workflows with the phase, on `heads`, serve lists of any phase, too.
DROP INDEX executions_tenant;
DROP INDEX executions_workflow;
