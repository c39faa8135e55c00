// The graph is loaded when it is first shown. Where that fails, the rest of the page stays.
import { Component, lazy, type ReactNode, Suspense } from 'react';
import type { Graph } from '../api/client';
import { Loading, Problem } from './basics';

const GraphView = lazy(() => import('./Graph'));

class Boundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return <Problem error="The graph could not be shown." retry={() => window.location.reload()} />;
  }
}

export function LazyGraph(props: { graph: Graph; chosen?: string | undefined; choose?: (id: string) => void }) {
  return (
    <Boundary>
      <Suspense fallback={<Loading />}>
        <GraphView {...props} />
      </Suspense>
    </Boundary>
  );
}
