import { lazy } from 'react';
import type { Graph } from '../api/client';
import { Lazy } from './Lazy';

const GraphView = lazy(() => import('./Graph'));

export function LazyGraph(props: { graph: Graph; chosen?: string | undefined; choose?: (id: string) => void }) {
  return (
    <Lazy name="graph">
      <GraphView {...props} />
    </Lazy>
  );
}
