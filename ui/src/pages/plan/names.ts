// Plans have no names: a plan is shown by its hint, or else by the end of its id.
import type { Plan, PlanAction, PlanStep } from '../../api/plans';
import { shortId } from '../../parts/words';

const TITLE_MAX = 80;

export function planTitle({ id, spec }: Pick<Plan, 'id' | 'spec'>): string {
  const [line = ''] = (spec.selectionHint ?? '').trim().split('\n');
  if (!line) return `Plan ${shortId(id)}`;
  return line.length > TITLE_MAX ? `${line.slice(0, TITLE_MAX)} …` : line;
}

export function actionTitle({ name, revision, image, script }: PlanAction): string {
  if (name) return `${name}${revision === undefined ? '' : ` revision ${revision}`}`;
  return image ? `image ${image}` : script === undefined ? 'action' : 'script';
}

/** Built-in actions have no document in the registry. */
export const isRegistered = ({ actionID }: PlanAction): boolean => actionID !== undefined;

export function routingText({ routingContext }: PlanStep): string | undefined {
  const [[kind, name] = []] = Object.entries(routingContext?.literal ?? routingContext?.ref ?? {});
  return kind && `${kind}: ${name}`;
}
