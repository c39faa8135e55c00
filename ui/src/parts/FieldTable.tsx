// Parameters or outputs of a plan or an action.
import type { PlanField } from '../api/plans';
import { Empty } from './basics';
import { Table } from './Table';
import { showInput } from './inputs';

const OF_PARAMETERS = [
  { name: 'Required', show: ({ required, default: value }: PlanField) => (required ? (value === undefined ? 'yes' : 'yes, has a default') : 'no') },
  { name: 'Default', show: ({ default: value }: PlanField) => value !== undefined && <code>{showInput(value)}</code> },
];

/** Columns that have a meaning for parameters only are left out for outputs. */
export function FieldTable({ fields, none, kind = 'parameters' }: { fields: readonly PlanField[]; none: string; kind?: 'parameters' | 'outputs' }) {
  if (fields.length === 0) return <Empty title={none} />;
  return (
    <Table
      rows={fields}
      rowKey={({ name }) => name}
      columns={[
        { name: 'Name', show: ({ name }) => <code>{name}</code> },
        ...(kind === 'parameters' ? OF_PARAMETERS : []),
        { name: 'Schema', isWide: true, show: ({ schema }) => (schema ? <code>{JSON.stringify(schema)}</code> : 'text') },
        { name: 'Notes', isWide: true, show: ({ metadata }) => metadata && Object.entries(metadata).map(([key, value]) => `${key}: ${value}`).join(', ') },
      ]}
    />
  );
}
