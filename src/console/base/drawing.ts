import { after } from './clock.ts';

/** What comes in between is drawn together: nobody reads faster, and frames between have nothing to do. */
const REST_MS = 100;

/**
 * Draws what keeps coming: before the next frame, but no more often than ten times a second, and not at all while the page
 * is not seen.
 */
export class Drawing {
  readonly #nextFrame: (run: () => void) => () => void;
  readonly #draw: () => void;
  #state: 'idle' | 'waiting' | 'resting' = 'idle';
  #is_asked = false;
  #cancel = () => {};

  constructor(nextFrame: (run: () => void) => () => void, draw: () => void) {
    this.#nextFrame = nextFrame;
    this.#draw = draw;
  }

  /** Something has come. */
  ask(): void {
    this.#is_asked = true;
    if (this.#state !== 'idle') return;
    this.#state = 'waiting';
    this.#cancel = this.#nextFrame(() => {
      this.#is_asked = false;
      this.#state = 'resting';
      this.#cancel = after(REST_MS, () => {
        this.#state = 'idle';
        if (this.#is_asked) this.ask();
      });
      this.#draw();
    });
  }

  /** What has come is not drawn any more. */
  end(): void {
    this.#cancel();
  }
}
