type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'idle';

const TONES: Record<string, Tone> = {
  running: 'good',
  starting: 'accent',
  paused: 'warn',
  terminating: 'idle',
  failed: 'bad',
  deleted: 'idle',
  delivered: 'good',
  pending: 'accent',
  expired: 'bad',
  foreign: 'idle',
  exited: 'idle',
  crashed: 'bad',
  restarting: 'warn',
  stopping: 'warn',
  awaiting_init: 'accent',
};

/** A state as a word with its colour. */
export function StateBadge({ state }: { state: string }) {
  return <span class={`badge is-${TONES[state] ?? 'idle'}`}>{state.replaceAll('_', ' ')}</span>;
}

/** What an attempt or process came to. */
export function Badge({ tone, text }: { tone: Tone; text: string }) {
  return <span class={`badge is-${tone}`}>{text}</span>;
}
