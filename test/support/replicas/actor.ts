import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../random.ts';
import { type Lane, RESOURCES, SECRET } from './lane.ts';
import { publishIn } from './machine.ts';
import type { Answered, Replica } from './replica.ts';
import { Tracked } from './tracked.ts';

const SANDBOXES = '/sandboxes';
const VERBS = [
  'claim',
  'claim',
  'fork',
  'pause',
  'pause',
  'resume',
  'resume',
  'publish',
  'publish',
  'change',
  'delete',
] as const;
type Verb = (typeof VERBS)[number];
/** An unanswered claim with a key is asked for again so often. */
const KEYED_ATTEMPTS = 4;
const AGAIN_MS = 250;
/** The first claim is asked for so often. */
const CLAIMS_AT_FIRST = 12;

/** What a round has asked for, and what was answered. */
export interface Story {
  readonly sandboxes: Tracked[];
  /** How often each verb was acknowledged, and how often asked for. */
  readonly verbs: Map<string, { done: number; asked: number }>;
  /** The database was put back to an earlier time. */
  is_put_back: boolean;
  /** Found by the operator then. */
  orphans: number;
  unseen: number;
}

/** Somebody who asks replicas for random changes of sandboxes of their own. All is drawn from `random`, whatever is answered. */
export class Actor {
  readonly #lane: Lane;
  readonly #random: Random;
  readonly #story: Story;
  readonly #own: Tracked[] = [];
  #published = 0;

  constructor(lane: Lane, random: Random, story: Story) {
    this.#lane = lane;
    this.#random = random;
    this.#story = story;
  }

  /** A claim, which is asked for until there is something to be changed, and so many changes. */
  async act(steps: number): Promise<void> {
    await this.#begin();
    for (let step = 0; step < steps; step++) {
      const drawn = this.#random.pick(VERBS);
      const [which, first, is_twice] = [this.#random.next(), this.#random.below(2), this.#random.chance(0.2)];
      const details = this.#drawDetails();
      const living = this.#own.filter(({ told }) => told !== 'gone');
      const target = living[Math.floor(which * living.length)];
      const [replica, other] = first === 0 ? this.#lane.replicas : this.#lane.replicas.toReversed();
      const asked = is_twice ? [replica as Replica, other as Replica] : [replica as Replica];
      const verb = target === undefined && drawn !== 'claim' ? 'claim' : drawn;
      this.#count(verb, await this.#carryOut(verb, target as Tracked, asked, details));
    }
  }

  async #begin(): Promise<void> {
    const [first, details] = [this.#random.below(2), this.#drawDetails()];
    for (let n = first; n < first + CLAIMS_AT_FIRST && this.#own.length === 0; n++) {
      const replica = this.#lane.replicas[n % 2] as Replica;
      this.#count('claim', await this.#claim([replica], details.chance, `${details.key}-${n}`));
      if (this.#own.length === 0) await sleep(AGAIN_MS * (1 + n));
    }
  }

  #drawDetails(): { chance: number; key: string } {
    return { chance: this.#random.next(), key: `key-${this.#random.below(2 ** 30)}` };
  }

  #count(verb: Verb, is_done: boolean): void {
    const { done, asked } = this.#story.verbs.get(verb) ?? { done: 0, asked: 0 };
    this.#story.verbs.set(verb, { done: done + (is_done ? 1 : 0), asked: asked + 1 });
  }

  #carryOut(
    verb: Verb,
    target: Tracked,
    replicas: Replica[],
    { chance, key }: { chance: number; key: string },
  ) {
    switch (verb) {
      case 'claim':
        return this.#claim(replicas, chance, key);
      case 'fork':
        return this.#fork(target, replicas);
      case 'publish':
        return this.#publish(target, 1 + Math.floor(chance * 4));
      case 'change':
        return this.#change(target, replicas, chance);
      default:
        return this.#move(verb, target, replicas);
    }
  }

  async #claim([replica, other]: Replica[], chance: number, key: string): Promise<boolean> {
    const has_ttl = chance < 0.2;
    const config = {
      resources: RESOURCES,
      webhook: { url: this.#lane.consumer.url, secret: SECRET },
      ...(has_ttl ? { ttl: 1, ...(chance < 0.1 ? { hard_ttl: 2 } : {}) } : {}),
    };
    const is_keyed = chance % 0.1 < 0.06;
    const asked_ms = performance.now();
    let answer = await (replica as Replica).ask('POST', SANDBOXES, { config }, is_keyed ? key : undefined);
    // An answer that did not come is asked for again, anywhere.
    const again = other ?? (replica as Replica);
    for (let n = 1; is_keyed && isOpen(answer) && n < KEYED_ATTEMPTS; n++) {
      await sleep(AGAIN_MS);
      answer = await again.ask('POST', SANDBOXES, { config }, key);
    }
    if (answer?.status !== 201) return false;
    this.#add(new Tracked(answer.data.sandbox_id, 'running', asked_ms, has_ttl));
    return true;
  }

  async #fork(source: Tracked, [replica]: Replica[]): Promise<boolean> {
    source.touched_ms = performance.now();
    const answer = await (replica as Replica).ask('POST', `${SANDBOXES}/${source.id}/fork`, {
      config: { ttl: 0, hard_ttl: 0 },
    });
    source.touched_ms = performance.now();
    if (answer?.status !== 201) return false;
    this.#add(new Tracked(answer.data.sandbox.id, 'paused', source.touched_ms, false));
    return true;
  }

  #add(sandbox: Tracked): void {
    this.#own.push(sandbox);
    this.#story.sandboxes.push(sandbox);
  }

  async #publish(sandbox: Tracked, count: number): Promise<boolean> {
    let done = 0;
    for (let n = 0; n < count; n++) {
      const payload = { n: `${sandbox.id}-${++this.#published}` };
      const event_id = await publishIn(this.#lane.data_dir, sandbox.id, payload);
      sandbox.touched_ms = performance.now();
      if (event_id === null) continue;
      sandbox.acknowledged.set(event_id, payload);
      done += 1;
    }
    return done > 0;
  }

  async #change(sandbox: Tracked, [replica]: Replica[], chance: number): Promise<boolean> {
    const memory = chance < 0.5 ? '128Mi' : '192Mi';
    sandbox.touched_ms = performance.now();
    const answer = await (replica as Replica).ask('PUT', `${SANDBOXES}/${sandbox.id}`, {
      config: { resources: { memory } },
    });
    sandbox.touched_ms = performance.now();
    return answer?.status === 200;
  }

  async #move(verb: 'pause' | 'resume' | 'delete', sandbox: Tracked, replicas: Replica[]): Promise<boolean> {
    const asked_ms = performance.now();
    const was = sandbox.told;
    if (verb === 'resume') sandbox.mayRun(asked_ms);
    else sandbox.mayStop(asked_ms);
    const [method, path] = verb === 'delete' ? ['DELETE', ''] : ['POST', `/${verb}`];
    const asking = replicas.map((replica) => replica.ask(method, `${SANDBOXES}/${sandbox.id}${path}`));
    const answers = await Promise.all(asking);
    const statuses = answers.map((answer) => answer?.status ?? 0);
    const is_done = statuses.includes(verb === 'delete' ? 202 : 200);
    if (verb === 'delete' && (is_done || statuses.includes(404))) sandbox.stopped('gone');
    if (is_done && verb === 'pause') sandbox.stopped('paused');
    if (is_done && verb === 'resume') sandbox.ran(asked_ms);
    if (was === 'running' && verb === 'resume' && statuses.every((status) => status === 409))
      sandbox.ran(asked_ms);
    return is_done;
  }
}

/** Whether nothing is known of what was asked for. */
function isOpen(answer: Answered): boolean {
  return answer === null || answer.status >= 500 || answer.status === 409;
}
