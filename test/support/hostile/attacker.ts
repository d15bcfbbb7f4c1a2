import { serve } from '../../bench/support/program.ts';
import { Random } from '../random.ts';
import type { Behaviours } from './behaviour.ts';
import { FILES_AND_TREES } from './behaviours/files.ts';
import { PROCESSES_AND_CONTEXTS } from './behaviours/processes.ts';
import { PUBLISHING } from './behaviours/publishing.ts';
import { READING } from './behaviours/reading.ts';
import { HostileClient, type Site } from './hostile-client.ts';
import { type NotedAnswers, Notes } from './notes.ts';

const BEHAVIOURS: Behaviours = { ...PUBLISHING, ...READING, ...PROCESSES_AND_CONTEXTS, ...FILES_AND_TREES };

export interface Attack {
  site: Site;
  clients: number;
  duration_ms: number;
  seed: number;
  /** Only behaviours whose name contains this. */
  only?: string;
}

export interface Attacked extends NotedAnswers {
  /** A checksum of each acknowledged payload, by event id. */
  acknowledged: [event_id: string, checksum: number][];
  /** Behaviours that were never drawn. */
  never: string[];
}

export type AttackerVerbs = { attack: (attack: Attack) => Promise<Attacked> };

/** So many clients, each with one behaviour after the other, for so long; each ends what it has begun. */
async function attack({ site, clients, duration_ms, seed, only = '' }: Attack): Promise<Attacked> {
  const names = Object.keys(BEHAVIOURS).filter((name) => name.includes(only));
  const notes = new Notes();
  const acknowledged = new Map<string, number>();
  const end = new AbortController();
  const random = new Random(seed);
  const timer = setTimeout(() => end.abort(), duration_ms);
  const crowd = { site, notes, acknowledged, over: end.signal };
  // Each behaviour is somebody's first before one is drawn twice.
  const firsts = names.map((name) => ({ name, at: random.next() })).sort((a, b) => a.at - b.at);
  const client = async (number: number) => {
    const one = new HostileClient(crowd, number, new Random(seed + number * 7919));
    let name = firsts[number % firsts.length]?.name ?? '';
    while (!end.signal.aborted) {
      one.behaviour = name;
      notes.run(name);
      try {
        await BEHAVIOURS[name]?.(one);
      } catch (error) {
        notes.defect(`${name}: ${(error as Error).stack}`);
      }
      name = one.random.pick(names);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  clearTimeout(timer);
  const { runs, answers, defects, defect_count } = notes;
  const never = names.filter((name) => runs[name] === undefined);
  return { runs, answers, defects, defect_count, never, acknowledged: [...acknowledged] };
}

// Thousands of listeners wait for the end of one attack.
process.setMaxListeners(0);

serve<AttackerVerbs>({ attack });
