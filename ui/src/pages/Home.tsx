// What runs, what failed, and what waits for people.
import { Link } from 'wouter';
import type { ListedExecution } from '../api/client';
import { useExecutions } from '../api/queries';
import { Empty, Loading, Problem, Section } from '../parts/basics';
import { ExecutionTable } from '../parts/ExecutionTable';

const DAY_MS = 86_400_000;

export function Home() {
  return (
    <>
      <h1>Home</h1>
      <List title="Waiting for people" status="paused" empty="Nothing waits for an answer." />
      <List title="Running" status="running" empty="Nothing runs now." />
      <List title="Queued" status="queued" />
      <List title="Failed in the last day" status="failed" isRecent empty="Nothing failed." />
    </>
  );
}

function List({ title, status, empty, isRecent }: { title: string; status: string; empty?: string; isRecent?: boolean }) {
  const found = useExecutions({ status }, 20);
  const since = Date.now() - DAY_MS;
  const all = found.data?.pages.flatMap((page) => page.executions) ?? [];
  const isShown = (execution: ListedExecution) => !isRecent || Date.parse(execution.completedAt ?? execution.createdAt) > since;
  const shown = all.filter(isShown);
  if (!empty && shown.length === 0) return null;
  return (
    <Section title={title} aside={<Link href={`/executions?status=${status}`}>all</Link>}>
      {found.error && !found.data && <Problem error={found.error} />}
      {found.isPending ? <Loading /> : shown.length > 0 ? <ExecutionTable executions={shown} /> : <Empty title={empty ?? ''} />}
    </Section>
  );
}
