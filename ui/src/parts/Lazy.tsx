// Large parts are loaded when they are first shown. If that fails, the rest of the page stays.
import { type ReactNode, Suspense } from 'react';
import { Loading } from './basics';
import { Boundary } from './Boundary';

export function Lazy({ name, children }: { name: string; children: ReactNode }) {
  return (
    <Boundary name={name}>
      <Suspense fallback={<Loading />}>{children}</Suspense>
    </Boundary>
  );
}
