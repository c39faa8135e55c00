// If a part cannot be shown, the rest of the page stays.
import { Component, type ReactNode } from 'react';
import { Problem } from './basics';

interface BoundaryProps {
  name: string;
  /** Another place is tried anew. */
  place?: string;
  children: ReactNode;
}

export class Boundary extends Component<BoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override componentDidUpdate(before: BoundaryProps) {
    if (this.state.hasFailed && before.place !== this.props.place) this.setState({ hasFailed: false });
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return <Problem error={`The ${this.props.name} could not be shown.`} retry={() => window.location.reload()} />;
  }
}
