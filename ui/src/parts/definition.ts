// Plans are workflows with pages of their own. They have no names: a plan is shown by its hint, or else by the end of its id.
import { type Plan, planId, useRecentPlans } from '../api/plans';
import { shortId } from './words';

export const definitionPath = ({ id, dialect }: { id: string; dialect?: string | null }): string => (dialect === 'plan' ? `/plans/${planId(id)}` : `/workflows/${id}`);

const TITLE_MAX = 80;

function hintTitle({ selectionHint = '' }: Plan['spec']): string | undefined {
  const [line = ''] = selectionHint.trim().split('\n');
  return line.length > TITLE_MAX ? `${line.slice(0, TITLE_MAX)} …` : line || undefined;
}

export const planTitle = ({ id, spec }: Pick<Plan, 'id' | 'spec'>): string => hintTitle(spec) ?? `Plan ${shortId(id)}`;

interface Definition {
  name?: string | null | undefined;
  dialect?: string | null | undefined;
}

/** Returns a function from definitions of a list to their names. The hints of plans are read if the list has plans. */
export function useDefinitionName(list: readonly Pick<Definition, 'dialect'>[]): (definition: Definition) => string {
  const plans = useRecentPlans(list.some(({ dialect }) => dialect === 'plan')).data?.items ?? [];
  const hints = new Map(plans.map(({ id, spec }) => [id, hintTitle(spec)]));
  return ({ name, dialect }) => {
    if (!name) return 'execution';
    return dialect === 'plan' && name.startsWith('pl_') ? (hints.get(name) ?? `plan ${shortId(name)}`) : name;
  };
}
