import type { IconName } from '../parts/icon.tsx';

/** A place in the navigation: where it leads, its word, its icon, and the key after `g`. */
export interface Place {
  segments: readonly string[];
  text: string;
  icon: IconName;
  key: string;
}

const MANAGER: readonly Place[] = [
  { segments: [], text: 'Overview', icon: 'overview', key: 'o' },
  { segments: ['sandboxes'], text: 'Sandboxes', icon: 'sandboxes', key: 's' },
  { segments: ['deliveries'], text: 'Deliveries', icon: 'deliveries', key: 'd' },
  { segments: ['events'], text: 'Events', icon: 'events', key: 'e' },
  { segments: ['quotas'], text: 'Quotas', icon: 'quotas', key: 'q' },
  { segments: ['usage'], text: 'Usage', icon: 'usage', key: 'u' },
];

const DAEMON: readonly Place[] = [
  { segments: [], text: 'Sandbox', icon: 'sandboxes', key: 'o' },
  { segments: ['processes'], text: 'Processes', icon: 'processes', key: 'p' },
  { segments: ['terminal'], text: 'Terminal', icon: 'terminal', key: 't' },
  { segments: ['files'], text: 'Files', icon: 'files', key: 'f' },
  { segments: ['deliveries'], text: 'Deliveries', icon: 'deliveries', key: 'd' },
  { segments: ['events'], text: 'Events', icon: 'events', key: 'e' },
];

/** The places of the page. */
export function placesOf(of: 'manager' | 'daemon'): readonly Place[] {
  return of === 'manager' ? MANAGER : DAEMON;
}
