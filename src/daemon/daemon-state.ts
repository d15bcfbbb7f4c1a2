import type { SandboxState } from '../contract/sandbox.ts';

/** A stage of a daemon's life; the table of DaemonState. */
export type LifeStage =
  | 'starting'
  | 'awaiting_init'
  | 'running'
  | 'pausing'
  | 'paused'
  | 'stopping'
  | 'stopped';

const NEXT: Readonly<Record<LifeStage, readonly LifeStage[]>> = {
  starting: ['awaiting_init', 'running', 'stopping'],
  awaiting_init: ['running', 'stopping'],
  running: ['pausing', 'stopping'],
  pausing: ['running', 'paused', 'stopping'],
  paused: ['running', 'stopping'],
  stopping: ['stopped'],
  stopped: [],
};

/** What clients see of a stage: a pause counts once its event is committed. */
const SHOWN: Readonly<Record<LifeStage, SandboxState | 'starting'>> = {
  starting: 'starting',
  awaiting_init: 'awaiting_init',
  running: 'running',
  pausing: 'running',
  paused: 'paused',
  stopping: 'stopping',
  stopped: 'stopping',
};

/**
 * The state machine of a daemon. Source: contract section 4, `GET /sandbox`.
 *
 * | stage | entered | left | what the API serves |
 * |---|---|---|---|
 * | `starting` | at construction | when the sandbox runs, or waits for its init | requests wait, then 503 |
 * | `awaiting_init` | after the start with `--await-init` | by `POST /sandbox/init` | no processes, no publishes |
 * | `running` | when the sandbox has started, or resumed | by a pause | everything |
 * | `pausing` | when the processes are about to be frozen | when `sandbox.paused` is committed, or is refused | everything |
 * | `paused` | when `sandbox.paused` is committed | when `sandbox.resumed` is committed | everything but new processes |
 * | `stopping` | by a stop at any stage, or a failed start | when everything has ended | no publishes, no new processes |
 * | `stopped` | when everything has ended; final | – | nothing |
 */
export class DaemonState {
  #stage: LifeStage = 'starting';

  /** The current stage. */
  get stage(): LifeStage {
    return this.#stage;
  }

  /** The state that clients see. */
  get shown(): SandboxState | 'starting' {
    return SHOWN[this.#stage];
  }

  /** Whether the daemon is ending or has ended. */
  get is_ending(): boolean {
    return this.#stage === 'stopping' || this.#stage === 'stopped';
  }

  /** Enters the next stage; returns false, and changes nothing, if the present one does not lead there. */
  enter(next: LifeStage): boolean {
    if (!NEXT[this.#stage].includes(next)) return false;
    this.#stage = next;
    return true;
  }
}
