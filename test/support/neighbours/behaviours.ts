import { Random } from '../random.ts';

/** What each hostile sandbox does: cheap, and of tables that all share. */
const EACH = ['processes', 'terminals', 'asynchronous', 'sockets'];

/** Dealt to them: more than one sandbox's memory would hold. */
const DEALT = [
  ...[
    'open_files',
    'socket_buffers',
    'pipes',
    'pipe_buffers',
    'inotify',
    'watches',
    'keys',
    'polls',
    'locks',
  ],
  ...[
    'shared_memory',
    'semaphores',
    'queues',
    'signals',
    'inodes',
    'disk',
    'syncs',
    'memory',
    'cpu',
    'threads',
  ],
  ...['publishes', 'output', 'datagrams', 'connections', 'refused_connections', 'streams', 'neighbours'],
];
/** How many sandboxes do the same. */
const COPIES = 2;

/** Behaviours of `count` sandboxes, by a seed: a list for each. */
export function dealt(count: number, seed: number): string[][] {
  const random = new Random(seed);
  const hands = Array.from({ length: count }, () => [] as string[]);
  for (let copy = 0; copy < COPIES; copy++) {
    const cards = DEALT.map((name) => ({ name, order: random.next() })).sort((a, b) => a.order - b.order);
    for (const { name } of cards) {
      const free = hands.filter((hand) => !hand.includes(name)).sort((a, b) => a.length - b.length);
      free[0]?.push(name);
    }
  }
  return hands.map((hand) => [...hand, ...EACH]);
}
