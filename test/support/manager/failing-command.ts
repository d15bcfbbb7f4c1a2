import type { ExecaError } from 'execa';
import { runManagerCommand } from '../manager-program.ts';

export interface Failure {
  code: number;
  stdout: string;
  stderr: string;
}

/** How a command fails; throws where it succeeds. */
export async function failureOf(...args: string[]): Promise<Failure> {
  const outcome = await runManagerCommand(...args).then(
    (stdout) => `it printed: ${stdout}`,
    ({ exitCode, stdout, stderr }: ExecaError) => ({ code: exitCode, stdout, stderr }) as Failure,
  );
  if (typeof outcome === 'string') throw new Error(outcome);
  return outcome;
}
