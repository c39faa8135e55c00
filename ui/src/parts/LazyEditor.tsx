// The editor of definitions, with the checks of the server.
import { useQuery } from '@tanstack/react-query';
import { lazy } from 'react';
import { api, type Schemas } from '../api/client';
import type { Finding } from '../editor/Editor';
import { Loading } from './basics';
import { Lazy } from './Lazy';

const Editor = lazy(() => import('../editor/Editor'));

/** Findings of the server in a text, or the reason why it was not checked. */
export interface Check {
  findings?: Finding[];
  failure?: string;
}

async function checkDefinition(source: string): Promise<Finding[]> {
  const { errors, warnings } = await api.postText<Schemas['Validation']>('/validate', source);
  const finding = (severity: Finding['severity']) => (detail: Schemas['Detail']) => ({
    severity,
    message: `${detail.code ? `${detail.code}: ` : ''}${detail.message}${detail.hint ? ` (${detail.hint})` : ''}`,
    line: detail.line,
    column: detail.column,
  });
  return [...errors.map(finding('error')), ...warnings.map(finding('warning'))];
}

interface LazyEditorProps {
  label: string;
  source: string;
  dialect?: string | undefined;
  isReadOnly?: boolean;
  change: (source: string) => void;
  checked?: (check: Check) => void;
  check?: (source: string) => Promise<Finding[]>;
}

export function LazyEditor({ label, source, dialect, isReadOnly = false, change, checked, check = checkDefinition }: LazyEditorProps) {
  const schema = useQuery({ queryKey: ['schema', dialect], queryFn: () => api.get<object>(`/schemas/${dialect}`), enabled: dialect !== undefined, staleTime: Infinity });
  const checkAndReport = async (text: string) => {
    try {
      const findings = await check(text);
      checked?.({ findings });
      return findings;
    } catch (error) {
      checked?.({ failure: error instanceof Error ? error.message : String(error) });
      return [];
    }
  };
  if (dialect && schema.isPending) return <Loading />;
  return (
    <Lazy name="editor">
      <Editor label={label} source={source} isReadOnly={isReadOnly} schema={schema.data} change={change} check={checkAndReport} />
    </Lazy>
  );
}
