// Queries about plans, their executions, and the actions that plans name.
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { Schema } from '../parts/inputs';
import { api, type ApiError, type Query, type Schemas } from './client';
import { KNOWN_PAGE, readItems, readPolled } from './pages';
import { LIVE_MS } from './shared';

/** A parameter or an output: text, or with a schema JSON. */
export interface PlanField {
  name: string;
  required?: boolean;
  default?: unknown;
  schema?: Schema;
  metadata?: Record<string, string>;
}

export interface PlanAction {
  actionID?: string;
  name?: string;
  revision?: number;
  params?: PlanField[];
  outputs?: PlanField[];
  script?: string;
  image?: string;
  timeout?: string;
  env?: Record<string, unknown>;
}

export interface PlanStep {
  id: string;
  action: PlanAction;
  args?: { values?: Record<string, unknown>; refs?: Record<string, string> };
  condition?: string;
  extraInputs?: PlanField[];
  extraOutputs?: PlanField[];
  routingContext?: { literal?: Record<string, string>; ref?: Record<string, string> };
}

export interface PlanSpec {
  selectionHint?: string;
  prompt?: string;
  params?: PlanField[];
  steps: PlanStep[];
  output?: Record<string, string>;
  cluster?: Record<string, string>;
  runner?: string;
}

export type Plan = Omit<Schemas['PlanView'], 'spec'> & { spec: PlanSpec };

/** A file. It can be downloaded once it is ready; an error is the reason why it will not be. */
export interface PlanArtifact {
  size?: number | null;
  checksum?: string | null;
  ready: boolean;
  error?: string | null;
}

/** An output or a log: a value, or a file to download. */
export interface PlanOutput {
  name: string;
  value?: unknown;
  artifact?: PlanArtifact;
  metadata?: Record<string, string>;
  stepRef?: { stepID: string; outputName: string };
  drill?: (string | number)[];
}

export interface PlanInput {
  name: string;
  resolvedVia: string;
  secretName?: string;
  ref?: string;
}

export interface PlanStepStatus {
  id: string;
  phase: string;
  inputs?: PlanInput[];
  outputs?: PlanOutput[];
  logs?: (Omit<PlanOutput, 'name'> & { stream: string })[];
  error?: string;
}

export interface PlanExecutionStatus {
  phase: string;
  runnerHost?: string;
  createdAt: string;
  completedAt?: string;
  stepCounts?: Record<string, number>;
  inputs?: PlanInput[];
  steps?: PlanStepStatus[];
  outputs?: PlanOutput[];
  error?: string;
}

export type PlanExecution = Omit<Schemas['PlanExecution'], 'status'> & { status: PlanExecutionStatus };

/** A plan is also a workflow, with the same digits in its id. */
export const planId = (workflowId: string): string => workflowId.replace(/^wf_/, 'pl_');

const RECENT_PLANS = 200;
const RECENT_MS = 60_000;

interface Page<Item> {
  items: Item[];
  nextCursor?: string | null;
}

const partsOf = <Item>(id: (item: Item) => string) => ({
  items: ({ items }: Page<Item>) => items,
  id,
  join: (fresh: Page<Item>, items: Item[], { nextCursor }: Page<Item>): Page<Item> => ({ ...fresh, items, nextCursor: nextCursor ?? null }),
});

const idOf = ({ id }: { id: string }): string => id;

function useCursorPages<Item>(key: unknown[], path: string, query: Query, id: (item: Item) => string, everyMs?: number) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: (context) => readPolled(context, partsOf(id), (cursor) => api.get<Page<Item>>(path, { ...query, cursor })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }: Page<Item>) => nextCursor ?? undefined,
    placeholderData: keepPreviousData,
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  });
}

export const usePlans = () => useCursorPages<Plan>(['plans'], '/plans', { limit: 50 }, idOf, LIVE_MS);

/** The newest plans, for their names in lists. */
export const useRecentPlans = (isOn: boolean) =>
  useQuery<Page<Plan>, ApiError>({ queryKey: ['plans', 'recent'], queryFn: () => api.get('/plans', { limit: RECENT_PLANS }), enabled: isOn, staleTime: RECENT_MS, refetchInterval: RECENT_MS });

export const usePlan = (id: string, isOn = true) => useQuery<Plan, ApiError>({ queryKey: ['plan', id], queryFn: () => api.get(`/plans/${id}`), enabled: isOn });

/** Executions of one plan, or of all plans; the newest first. */
export const usePlanExecutions = (planID: string | undefined, phase?: string, pageSize = 50) =>
  useCursorPages<PlanExecution>(['plan-executions', planID, phase, pageSize], '/plan-executions', { planID, phase, pageSize }, idOf, LIVE_MS);

/** The newest execution of a plan. */
export const useNewestExecution = (planID: string, isOn: boolean) =>
  useQuery<Page<PlanExecution>, ApiError>({ queryKey: ['plan-executions', planID, 'newest'], queryFn: () => api.get('/plan-executions', { planID, pageSize: 1 }), enabled: isOn });

export const usePlanExecution = (id: string, isOn = true) =>
  useQuery<PlanExecution, ApiError>({ queryKey: ['execution', id, 'plan'], queryFn: () => api.get(`/plan-executions/${id}`), enabled: isOn, placeholderData: keepPreviousData });

/** The first actions by name, for a search in all of them. */
export const useKnownActions = () =>
  useQuery<readonly Schemas['ListedAction'][], ApiError>({
    queryKey: ['actions', 'known'],
    queryFn: () => readItems((cursor) => api.get<Page<Schemas['ListedAction']>>('/actions', { limit: KNOWN_PAGE, cursor }).then(({ items, nextCursor }) => [items, nextCursor])),
    staleTime: RECENT_MS,
  });

export const useActions = () => useCursorPages<Schemas['ListedAction']>(['actions'], '/actions', { limit: 100 }, idOf);

/** An action with its newest revision, or with the given one. */
export const useAction = (name: string, revision?: string) =>
  useQuery<Schemas['ActionView'] & PlanAction, ApiError>({
    queryKey: ['action', name, revision],
    queryFn: () => api.get(`/actions/${encodeURIComponent(name)}`, { revision }),
    placeholderData: keepPreviousData,
  });

export const useRevisions = (name: string) => useCursorPages<Schemas['ListedRevision']>(['action', name, 'revisions'], `/actions/${encodeURIComponent(name)}/revisions`, { limit: 100 }, ({ revision }) => String(revision));

export const useClusters = () => useQuery<Page<Schemas['ClusterView']>, ApiError>({ queryKey: ['clusters'], queryFn: () => api.get('/clusters', { limit: 100 }) });
