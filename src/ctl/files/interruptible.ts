const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does work that has something to tidy up. The first signal that would end the program aborts it, and ends the program once
 * the work has tidied up; the next one does so at once.
 */
export async function interruptible<Result>(
  work: (interrupted: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  let received: NodeJS.Signals | null = null;
  const onSignal = (signal: NodeJS.Signals) => {
    received = signal;
    controller.abort();
  };
  for (const signal of SIGNALS) process.once(signal, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
    if (received !== null) {
      process.kill(process.pid, received);
      await new Promise(() => {}); // nothing is left to be said
    }
  }
}
