import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { api, type ApiError, type Schemas } from './client';
import { LIVE_MS, useCan, useSession } from './shared';

const useList = <Of>(name: string, isOn = true, every: number | false = false) =>
  useQuery<Of, ApiError>({ queryKey: [name], queryFn: () => api.get(`/${name}`), enabled: isOn, refetchInterval: every });

export const useTokens = (isOn = true) => useList<Schemas['TokenList']>('tokens', isOn);

/** Whether an id is of the user. A person and the tokens of the person have ids of their own; only administrators can read to whom a token belongs. */
export function useIsOwn(id: string): boolean {
  const own = useSession().data?.id;
  const canRead = useCan('administer');
  const { data } = useTokens(canRead && own !== undefined && id !== own);
  const personOf = (user: string) => data?.tokens.find((token) => token.id === user)?.person ?? user;
  return own !== undefined && personOf(id) === personOf(own);
}

export const useTenants = (isOperator: boolean) => useList<Schemas['TenantList']>('tenants', isOperator);
export const useSecrets = (isOn = true) => useList<Schemas['SecretList']>('secrets', isOn);
export const useRunnerGroups = () => useList<Schemas['RunnerGroupList']>('runner-groups', true, LIVE_MS);
export const useQuarantine = (isOn: boolean) => useList<Schemas['QuarantineList']>('quarantine', isOn, LIVE_MS);

export function useAudit(filter: { action?: string | undefined; actor?: string | undefined; target?: string | undefined }) {
  return useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam }) => api.get<Schemas['AuditList']>('/audit', { ...filter, limit: 50, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
  });
}

export function useDeliveries(status: string | undefined) {
  return useInfiniteQuery({
    queryKey: ['webhook-deliveries', status],
    queryFn: ({ pageParam }) => api.get<Schemas['Deliveries']>('/webhook-deliveries', { status, limit: 50, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.pagination.cursor ?? undefined,
    refetchInterval: LIVE_MS,
  });
}

export interface Readiness {
  isReady: boolean;
  reason?: string | undefined;
}

/** Whether the server that answers is ready. */
export function useReadiness() {
  return useQuery<Readiness>({ queryKey: ['readiness'], queryFn: readReadiness, refetchInterval: LIVE_MS * 2 });
}

async function readReadiness(): Promise<Readiness> {
  const ready = await fetch('/readyz');
  const refused = ready.ok ? undefined : await ready.json().catch(() => undefined);
  return { isReady: ready.ok, reason: refused?.error?.message };
}

/** The measurements of the server that answers, without labels. Old ones are not shown as those of now: while they cannot be read, each is undefined. */
export function useGauges() {
  const { data, error } = useQuery({ queryKey: ['gauges'], queryFn: readMetrics, refetchInterval: LIVE_MS * 2, retry: 0 });
  return { gauge: (name: string): number | undefined => (error ? undefined : data?.[`windlass_${name}`]), error };
}

async function readMetrics(): Promise<Record<string, number>> {
  const metrics = await fetch('/metrics');
  if (!metrics.ok) throw new Error(`The server does not report its measurements: it answered ${metrics.status}.`);
  return readGauges(await metrics.text());
}

function readGauges(text: string): Record<string, number> {
  const lines = text.matchAll(/^(windlass_\w+) (\S+)$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name, Number(value)]));
}
