import { lazy } from 'react';
import type { GraphProps } from './Graph';
import { Lazy } from './Lazy';

/** Loads the code of graphs, so that it is there when the data of one arrives. */
export const loadGraph = () => import('./Graph');

const GraphView = lazy(loadGraph);

export function LazyGraph(props: GraphProps) {
  return (
    <Lazy name="graph">
      <GraphView {...props} />
    </Lazy>
  );
}
