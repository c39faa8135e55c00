// The editor of definitions, with the checks of the server.
import { useQuery } from '@tanstack/react-query';
import { lazy } from 'react';
import { api, type Schemas } from '../api/client';
import type { Finding } from '../editor/Editor';
import { Lazy } from './Lazy';

const Editor = lazy(() => import('../editor/Editor'));

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
  found?: (findings: Finding[]) => void;
  check?: (source: string) => Promise<Finding[]>;
}

export function LazyEditor({ label, source, dialect, isReadOnly = false, change, found, check = checkDefinition }: LazyEditorProps) {
  const schema = useQuery({ queryKey: ['schema', dialect], queryFn: () => api.get<object>(`/schemas/${dialect}`), enabled: dialect !== undefined, staleTime: Infinity });
  const checkAndReport = async (text: string) => {
    const findings = await check(text);
    found?.(findings);
    return findings;
  };
  if (dialect && schema.isPending) return null;
  return (
    <Lazy name="editor">
      <Editor label={label} source={source} isReadOnly={isReadOnly} schema={schema.data} change={change} check={checkAndReport} />
    </Lazy>
  );
}
