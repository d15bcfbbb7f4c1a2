import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { missing, type Need } from './tools.ts';

type Undo = () => unknown;

/** What one case sets up: a folder of its own, and the undoing of everything, last first. */
export class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandboxd-fault-'));
  readonly #undo: Undo[] = [];

  constructor() {
    this.undo(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Registers what takes something back when the case is over. */
  undo(undo: Undo): void {
    this.#undo.push(undo);
  }

  /** Takes everything back; the first failure is thrown when all has been tried. */
  async release(): Promise<void> {
    const failures: unknown[] = [];
    for (const undo of this.#undo.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

interface Setting {
  /** What the case needs; where something is missing it is skipped, and its title says why. */
  needs?: Need[];
  timeout_ms?: number;
  /** It mostly waits: run it beside the others of its file. */
  beside?: boolean;
}

/** One case of the catalogue. The title begins with the case's id. */
export function fault(title: string, setting: Setting, run: (scene: Scene) => Promise<void>): void {
  const { needs = [], timeout_ms = 60_000, beside = false } = setting;
  const absent = missing(needs);
  const full_title = absent === null ? title : `${title} (skipped: needs ${absent})`;
  const options = { timeout: timeout_ms, concurrent: beside, skip: absent !== null };
  test(full_title, options, async ({ onTestFinished }) => {
    const scene = new Scene();
    onTestFinished(() => scene.release(), timeout_ms);
    await run(scene);
  });
}
