// A run of actions in its own words: the actions in their order with their tiers, and the compensated ones.
import type { Execution, Schemas } from '../../api/client';
import { Empty, Section, StatusMark, Time } from '../../parts/basics';
import { Table } from '../../parts/Table';
import { plural, withoutColours } from '../../parts/words';

interface ActionRow {
  actionId: string;
  order: number;
  status: string;
  attempts: number;
  startedAtIso?: string | null;
  endedAtIso?: string | null;
  error?: { code: string; message: string } | null;
  executionTier?: string | null;
}

interface ActionView {
  actions?: ActionRow[];
  compensation?: Schemas['Compensation'] | null;
}

const MARKS: Record<string, string> = { Succeeded: 'completed', Failed: 'failed', Cancelled: 'cancelled', Running: 'running', WaitingForManualCompletion: 'waiting', NotRun: 'skipped', NonCompensable: 'skipped' };

const Mark = ({ status }: { status: string }) => <StatusMark status={MARKS[status] ?? 'pending'} text={status} />;

export function ActionRun({ execution }: { execution: Execution }) {
  const { actions = [], compensation } = (execution.view ?? {}) as ActionView;
  return (
    <>
      <Section title="Actions">
        {actions.length === 0 && <Empty title="No action has begun." />}
        <Table
          rows={actions}
          rowKey={({ actionId }) => actionId}
          columns={[
            { name: 'Order', isNumber: true, show: ({ order }) => order },
            { name: 'Action', show: ({ actionId }) => actionId },
            { name: 'Status', show: ({ status }) => <Mark status={status} /> },
            { name: 'Tier', show: ({ executionTier }) => executionTier },
            { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts },
            { name: 'Started', show: ({ startedAtIso }) => <Time at={startedAtIso} /> },
            { name: 'Ended', show: ({ endedAtIso }) => <Time at={endedAtIso} /> },
            { name: 'Error', isWide: true, show: ({ error }) => error && withoutColours(`${error.code}: ${error.message}`) },
          ]}
        />
      </Section>
      {compensation && <Undone compensation={compensation} />}
    </>
  );
}

function Undone({ compensation }: { compensation: Schemas['Compensation'] }) {
  const { attempted, succeeded, failed, nonCompensable, entries } = compensation;
  return (
    <Section title="Compensation">
      <p>
        {plural(attempted, 'action was', 'actions were')} to be undone: {succeeded} succeeded, {failed} failed
        {nonCompensable > 0 && `; ${plural(nonCompensable, 'action has', 'actions have')} no compensation`}.
      </p>
      <Table
        rows={entries}
        rowKey={({ actionId }) => actionId}
        columns={[
          { name: 'Action', show: ({ actionId }) => actionId },
          { name: 'Operation', show: ({ operation }) => operation && <code>{operation}</code> },
          { name: 'Outcome', show: ({ outcome }) => <Mark status={outcome} /> },
          { name: 'Attempts', isNumber: true, show: ({ attempts }) => attempts },
          { name: 'Error', isWide: true, show: ({ error }) => error && withoutColours(`${error.code}: ${error.message}`) },
        ]}
      />
    </Section>
  );
}
