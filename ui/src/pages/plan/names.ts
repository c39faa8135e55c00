import type { PlanAction, PlanStep } from '../../api/plans';

export { planTitle } from '../../parts/definition';

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
