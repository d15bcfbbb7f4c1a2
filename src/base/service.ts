/** Something that runs: `start` returns when it does, `stop` is idempotent and returns when it has ended. */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}
