// Input, output and context of an execution, and its large values to download.
import { useMemo } from 'react';
import type { Execution } from '../../api/client';
import { Section } from '../../parts/basics';
import { Download } from '../../parts/Download';
import { Table } from '../../parts/Table';
import { Json } from '../../parts/Json';
import { API, isReference } from '../../parts/reference';
import { bytes } from '../../parts/words';
import { firingName } from './firings';

interface Reference {
  place: string;
  bytes: number;
  url: string;
}

const FOUND_MAX = 200;

export function Values({ execution }: { execution: Execution }) {
  const context = (execution.view as { ctx?: object } | null | undefined)?.ctx;
  const references = useMemo(() => findReferences(execution), [execution]);
  return (
    <>
      <div className="columns">
        <Section title="Input">
          <Json value={execution.inputs} label="the input" />
        </Section>
        <Section title="Output">
          <Json value={execution.outputs} label="the output" />
        </Section>
      </div>
      <Section title="Context">
        <Json value={context} label="the context" />
      </Section>
      {references.length > 0 && (
        <Section title="Large values">
          <Table
            rows={references}
            rowKey={({ place, url }) => place + url}
            columns={[
              { name: 'Value', isWide: true, show: ({ place }) => <code>{place}</code> },
              { name: 'Size', isNumber: true, show: (found) => bytes(found.bytes) },
              {
                name: 'File',
                show: ({ place, url }) => <Download path={url.slice(API.length)} name={`${place.replaceAll(/[^\w.-]+/g, '_')}.json`} />,
              },
            ]}
          />
        </Section>
      )}
    </>
  );
}

/** The references to values that are stored outside of the response, with their places in it. */
function findReferences({ inputs, outputs, nodeExecutions, view }: Execution): Reference[] {
  const found: Reference[] = [];
  const search = (value: unknown, place: string): void => {
    if (value === null || typeof value !== 'object' || found.length >= FOUND_MAX) return;
    if (isReference(value)) found.push({ place, url: value.url, bytes: Number(value.bytes) });
    else for (const [key, inner] of Object.entries(value)) search(inner, `${place}.${key}`);
  };
  search(inputs, 'input');
  search(outputs, 'output');
  search((view as { ctx?: object } | null | undefined)?.ctx, 'context');
  for (const { nodeId, firing, path, output, iterations = [] } of nodeExecutions) {
    const place = firingName(nodeId, path, path?.length ? 1 : firing);
    search(output, place);
    for (const iteration of iterations) search(iteration.output, `${place}[${iteration.index}]`);
  }
  return found;
}
