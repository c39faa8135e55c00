// The pages that the navigation, the keys and the command palette lead to.
import type { Permission } from '../api/client';
import type { IconName } from './Icon';

export interface Place {
  key: string;
  path: string;
  name: string;
  icon: IconName;
  needs?: Permission;
}

export const PLACES: readonly Place[] = [
  { key: 'h', path: '/', name: 'Home', icon: 'home' },
  { key: 'e', path: '/executions', name: 'Executions', icon: 'play' },
  { key: 'w', path: '/workflows', name: 'Workflows', icon: 'graph' },
  { key: 'p', path: '/plans', name: 'Plans', icon: 'plan' },
  { key: 'c', path: '/actions', name: 'Actions', icon: 'bolt' },
  { key: 's', path: '/schedules', name: 'Schedules', icon: 'clock' },
  { key: 'd', path: '/dead-letters', name: 'Dead letters', icon: 'letter' },
  { key: 'a', path: '/administration', name: 'Administration', icon: 'gear' },
];

export const isAt = (location: string, path: string): boolean => (path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`));
