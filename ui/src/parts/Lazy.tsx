// Heavy parts are loaded when they are first shown. Where that fails, the rest of the page stays.
import { Component, type ReactNode, Suspense } from 'react';
import { Loading, Problem } from './basics';

class Boundary extends Component<{ name: string; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return <Problem error={`The ${this.props.name} could not be shown.`} retry={() => window.location.reload()} />;
  }
}

export function Lazy({ name, children }: { name: string; children: ReactNode }) {
  return (
    <Boundary name={name}>
      <Suspense fallback={<Loading />}>{children}</Suspense>
    </Boundary>
  );
}
