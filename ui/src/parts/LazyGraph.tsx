import { lazy } from 'react';
import type { Graph } from '../api/client';
import { Lazy } from './Lazy';

/** Loads the code of graphs, so that it is there when the data of one arrives. */
export const loadGraph = () => import('./Graph');

const GraphView = lazy(loadGraph);

export function LazyGraph(props: { graph: Graph; chosen?: string | undefined; choose?: (id: string) => void }) {
  return (
    <Lazy name="graph">
      <GraphView {...props} />
    </Lazy>
  );
}
