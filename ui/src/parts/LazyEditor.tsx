// The editor of definitions, with the checks of the server.
import { useQuery } from '@tanstack/react-query';
import { lazy, useEffect, useRef } from 'react';
import { api, type Graph, type Schemas } from '../api/client';
import type { Finding } from '../editor/Editor';
import { Loading, Problem } from './basics';
import { Lazy } from './Lazy';

const Editor = lazy(() => import('../editor/Editor'));

/** Findings of the server in a text, or the reason why it was not checked. */
export interface Check {
  findings?: Finding[];
  failure?: string;
  /** The graph of a text without errors, if it was asked for. */
  graph?: Graph | undefined;
}

async function checkDefinition(source: string, isDrawn: boolean): Promise<{ findings: Finding[]; graph: Graph | undefined }> {
  const { errors, warnings, graph } = await api.postText<Schemas['Validation']>(isDrawn ? '/validate?graph=true' : '/validate', source);
  const finding = (severity: Finding['severity']) => (detail: Schemas['Detail']) => ({
    severity,
    message: `${detail.code ? `${detail.code}: ` : ''}${detail.message}${detail.hint ? ` (${detail.hint})` : ''}`,
    line: detail.line,
    column: detail.column,
  });
  return { findings: [...errors.map(finding('error')), ...warnings.map(finding('warning'))], graph };
}

interface LazyEditorProps {
  label: string;
  source: string;
  dialect?: string | undefined;
  isReadOnly?: boolean;
  change: (source: string) => void;
  checked: (check: Check) => void;
  /** Whether the checks return the graph of the text. */
  isDrawn?: boolean;
}

export function LazyEditor({ label, source, dialect, isReadOnly = false, change, checked, isDrawn = false }: LazyEditorProps) {
  const schema = useQuery({ queryKey: ['schema', dialect], queryFn: () => api.get<object>(`/schemas/${dialect}`), enabled: dialect !== undefined, staleTime: Infinity });
  // Answers may arrive in another order than their requests. Only that of the newest request is about the text.
  const newest = useRef(0);
  useEffect(() => () => void (newest.current += 1), []);
  const checkAndReport = async (text: string) => {
    const number = (newest.current += 1);
    const report = (check: Check) => number === newest.current && checked(check);
    try {
      const check = await checkDefinition(text, isDrawn);
      report(check);
      return check.findings;
    } catch (error) {
      report({ failure: error instanceof Error ? error.message : String(error) });
      return [];
    }
  };
  if (dialect && schema.isPending) return <Loading />;
  return (
    <>
      {schema.error && (
        <>
          <p className="bad-text">Keys and values are not completed: the schema could not be read.</p>
          <Problem error={schema.error} retry={() => void schema.refetch()} />
        </>
      )}
      <Lazy name="editor">
        <Editor label={label} source={source} isReadOnly={isReadOnly} schema={schema.data} change={change} check={checkAndReport} />
      </Lazy>
    </>
  );
}
