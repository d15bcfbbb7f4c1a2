import type { Fence, ForkFences, Runtime } from '../../../src/runtime/runtime.ts';

const VERBS = new Set(['create', 'pause', 'resume', 'fork', 'change', 'end', 'handOver', 'remove']);

/** Where a replica stops: before it asks whether the operation is still its own, or between the answer and the step. */
export type Moment = 'before' | 'after';

/** Called at every moment of every step, which are named `verb: step`; the replica stands still until it resolves. */
export type AtStep = (name: string, moment: Moment) => Promise<void>;

/** The runtime of one replica, of which `atStep` is told every step that it is about to take, whichever there are. */
export function freezingRuntime(runtime: Runtime, atStep: AtStep): Runtime {
  const told = (verb: string, fence: Fence): Fence => ({
    number: fence.number,
    lose: () => fence.lose(),
    async check(step) {
      await atStep(`${verb}: ${step}`, 'before');
      await fence.check(step);
      await atStep(`${verb}: ${step}`, 'after');
    },
  });
  const toldOf = (verb: string, given: unknown): unknown => {
    if (isFences(given)) return { source: told(verb, given.source), child: told(verb, given.child) };
    return isFence(given) ? told(verb, given) : given;
  };
  return new Proxy(runtime, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (!VERBS.has(name as string)) return value.bind(target);
      return (...given: unknown[]) =>
        value.apply(
          target,
          given.map((each) => toldOf(name as string, each)),
        );
    },
  });
}

function isFence(given: unknown): given is Fence {
  return typeof given === 'object' && given !== null && 'check' in given;
}

function isFences(given: unknown): given is ForkFences {
  return typeof given === 'object' && given !== null && 'source' in given && isFence(given.source);
}
