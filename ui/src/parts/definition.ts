// Plans are workflows with pages of their own; their names are ids.
import { planId } from '../api/plans';
import { shortId } from './words';

export const definitionPath = ({ id, dialect }: { id: string; dialect?: string | null }): string => (dialect === 'plan' ? `/plans/${planId(id)}` : `/workflows/${id}`);

export const definitionName = ({ name, dialect }: { name: string; dialect?: string | null }): string => (dialect === 'plan' && name.startsWith('pl_') ? `plan ${shortId(name)}` : name);
