import { Problem } from '../../parts/basics';
import type { ReadCourse } from './course';

/** Without the graph, steps that did not run are not listed, and reasons lack the conditions. */
export function CourseProblem({ course: { error, retry } }: { course: ReadCourse }) {
  if (!error) return null;
  return (
    <>
      <p className="bad-text">The graph or the definition could not be read: steps and reasons are incomplete.</p>
      <Problem error={error} retry={retry} />
    </>
  );
}
