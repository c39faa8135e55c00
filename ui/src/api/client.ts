// Requests to the API of the server that served this page. The session is a cookie that scripts cannot read.
import type { components } from './schema';

export type Schemas = components['schemas'];
export type Session = Schemas['Me'];
export type Execution = Schemas['ExecutionResponse'];
export type ListedExecution = Schemas['Execution'];
export type NodeExecution = Schemas['NodeExecution'];
export type ExecutionError = Schemas['ExecutionError'];
export type Waiting = Schemas['Waiting'];
export type Graph = Schemas['Graph'];
export type Workflow = Schemas['WorkflowView'];
export type Permission = Schemas['PermissionName'];
export type Task = Schemas['Task'];
export type PublicEvent = Schemas['PublicEvent'];
export type Status = Schemas['ExecutionStatus'];

/** An answer of the server that is not a success, or no answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: { path?: string | null; message: string; line?: number | null; column?: number | null }[] = [],
  ) {
    super(message);
  }

  get isSignedOut(): boolean {
    return this.status === 401;
  }

  /** Retries of a request that only reads. A server that is restarted is back soon; what is missing or refused stays so, and other errors are shown. */
  get retriesMax(): number {
    if (this.status === 0 || this.status === 503) return 30;
    return this.status === 429 || this.status >= 500 ? 2 : 0;
  }
}

export type Query = Record<string, string | number | boolean | undefined>;

const TENANT = 'windlass.tenant';
/** Sessions belong to the user, whichever tenant is viewed. */
const SESSION = '/session';

const tenantListeners = new Set<() => void>();

/** The tenant that an operator views in place of the operator's own. */
export const tenant = {
  get: (): string | null => sessionStorage.getItem(TENANT),
  set: (id: string | null): void => {
    if (id) sessionStorage.setItem(TENANT, id);
    else sessionStorage.removeItem(TENANT);
    tenantListeners.forEach((listener) => listener());
  },
  subscribe: (listener: () => void): void => void tenantListeners.add(listener),
};

let isReached = true;
const listeners = new Set<() => void>();

/** Whether the server answered the newest request. */
export const reach = {
  get: (): boolean => isReached,
  set: (is: boolean): void => {
    if (is === isReached) return;
    isReached = is;
    listeners.forEach((listener) => listener());
  },
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function address(path: string, query?: Query): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  // A browser reads a backslash as a slash: a part of a path stays in its place.
  return `/api/v1${path.replaceAll('\\', '%5C')}${text && `?${text}`}`;
}

interface Sent {
  query?: Query | undefined;
  body?: unknown;
  text?: string;
  headers?: Record<string, string>;
}

async function send(method: string, path: string, options: Sent = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  const other = tenant.get();
  if (other && !path.startsWith(SESSION)) headers['X-Tenant-ID'] = other;
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  if (options.text !== undefined) headers['Content-Type'] = 'application/yaml';
  const body = options.text ?? (options.body === undefined ? null : JSON.stringify(options.body));
  let response: Response;
  try {
    response = await fetch(address(path, options.query), { method, headers, body });
  } catch {
    reach.set(false);
    throw new ApiError(0, 'UNREACHABLE', `The server does not answer. ${method === 'GET' ? 'The page tries again by itself.' : 'Nothing was confirmed; try again.'}`);
  }
  reach.set(true);
  if (response.ok) return response;
  const refused = await response.json().catch(() => null);
  const { code = 'UNKNOWN', message = `The server answered ${response.status}.`, details = [] } = refused?.error ?? {};
  throw new ApiError(response.status, code, message, details);
}

const json = async <T>(response: Promise<Response>): Promise<T> => (await response).json();

export const api = {
  get: <T>(path: string, query?: Query): Promise<T> => json(send('GET', path, { query })),
  text: async (path: string, query?: Query): Promise<string> => (await send('GET', path, { query })).text(),
  blob: async (path: string, query?: Query): Promise<Blob> => (await send('GET', path, { query })).blob(),
  post: <T>(path: string, body: unknown): Promise<T> => json(send('POST', path, { body })),
  postText: <T>(path: string, text: string): Promise<T> => json(send('POST', path, { text })),
  put: <T>(path: string, body: unknown): Promise<T> => json(send('PUT', path, { body })),
  putText: <T>(path: string, text: string, headers: Record<string, string> = {}): Promise<T> => json(send('PUT', path, { text, headers })),
  patch: <T>(path: string, body: unknown): Promise<T> => json(send('PATCH', path, { body })),
  remove: async (path: string): Promise<void> => void (await send('DELETE', path)),
  address,
};
