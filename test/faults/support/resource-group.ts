import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import type { Scene } from './scene.ts';
import { until } from './until.ts';

type Controller = 'memory' | 'pids' | 'freezer';

const ROOT = '/sys/fs/cgroup';

let groups = 0;

/** Whether the kernel's first kind of control groups is there, with this controller. */
export function hasController(controller: Controller): boolean {
  return existsSync(`${ROOT}/${controller}/cgroup.procs`);
}

/** A control group of the case's own, with one controller. */
export class ResourceGroup {
  readonly #folder: string;

  constructor(scene: Scene, controller: Controller) {
    this.#folder = `${ROOT}/${controller}/sandboxd-fault-${process.pid}-${++groups}`;
    mkdirSync(this.#folder);
    scene.undo(() => until('the group is empty', () => this.#remove()));
  }

  /** The command that starts a program in this group. */
  get through(): string[] {
    return ['sh', '-c', `echo $$ > ${this.#folder}/cgroup.procs && exec "$0" "$@"`];
  }

  set(file: string, value: string | number): void {
    writeFileSync(`${this.#folder}/${file}`, String(value));
  }

  get(file: string): string {
    return readFileSync(`${this.#folder}/${file}`, 'utf8').trim();
  }

  #remove(): boolean {
    for (const pid of this.get('cgroup.procs').split('\n').filter(Boolean))
      process.kill(Number(pid), 'SIGKILL');
    try {
      rmdirSync(this.#folder);
      return true;
    } catch {
      return false;
    }
  }
}
