import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_FLAGS } from '../base/engine/flags.ts';
import { hideNodeVariables } from '../base/node-variables.ts';

const SECRET_VARIABLE = 'SANDBOXD_WEBHOOK_SECRET';
const SECRET_OPTION = '--webhook-secret';
/** Set in the environment of a daemon that has restarted itself: the secret is on its standard input. */
const HANDED_OVER = 'SANDBOXD_SECRET_ON_STDIN';

/**
 * Removes the webhook secret from everything that other processes can see: the arguments, the environment block and the
 * environment of children. Also hides the variables that change Node itself. If either requires a new start, the program
 * is restarted in the same process. Must run before anything else. Returns the secret from the environment, if any.
 * Source: contract section 4, "The daemon removes its secret variables".
 */
export function takeSecrets(): string | undefined {
  keepMemoryPrivate();
  if (process.env[HANDED_OVER] !== undefined) return takeHandedOver();
  const secret = process.env[SECRET_VARIABLE];
  delete process.env[SECRET_VARIABLE];
  const is_changed = hideNodeVariables(process.env);
  const are_arguments_hidden = overwrite('cmdline', 48, argumentSecrets);
  const is_variable_hidden = overwrite('environ', 50, (parts) =>
    parts.map((part) => valueAfter(part, `${SECRET_VARIABLE}=`)),
  );
  if (is_changed || !are_arguments_hidden || (secret && !is_variable_hidden)) {
    const { args, given } = are_arguments_hidden
      ? { args: process.argv, given: undefined }
      : plainArguments();
    restart(args.slice(1), given ?? secret);
  }
  return secret;
}

/** The arguments without the secret, and the secret. */
function plainArguments(): { args: string[]; given: string | undefined } {
  const starts = argumentSecrets(process.argv);
  const is_secret = (i: number) => (starts[i] ?? -1) >= 0;
  const given = process.argv.flatMap((arg, i) => (is_secret(i) ? [arg.slice(starts[i])] : [])).at(-1);
  const args = process.argv.filter((_, i) => !is_secret(i) && !(starts[i + 1] === 0));
  return { args, given };
}

/** The index in each argument where the secret begins, or -1. */
function argumentSecrets(args: string[]): number[] {
  const command = args.indexOf('--');
  return args.map((arg, i) => {
    if (command >= 0 && i > command) return -1;
    if (args[i - 1] === SECRET_OPTION) return 0;
    return valueAfter(arg, `${SECRET_OPTION}=`);
  });
}

function valueAfter(text: string, prefix: string): number {
  return text.startsWith(prefix) ? prefix.length : -1;
}

/**
 * Overwrites parts of this process's own argument or environment block through its memory file. `field` is the number of
 * the block's start address in proc(5)'s stat. Returns false if a secret stays visible.
 */
function overwrite(block: string, field: number, find: (parts: string[]) => number[]): boolean {
  let parts: string[] = [];
  try {
    // One character per byte, so that indices are byte offsets.
    parts = readFileSync(`/proc/self/${block}`, 'latin1').split('\0');
    const starts = find(parts);
    if (starts.every((start) => start < 0)) return true;
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    let address = Number(fields[field - 3]);
    const memory = openSync('/proc/self/mem', 'r+');
    parts.forEach((part, i) => {
      const start = starts[i] ?? -1;
      if (start >= 0 && start < part.length) {
        writeSync(memory, Buffer.alloc(part.length - start, '*'), 0, part.length - start, address + start);
      }
      address += part.length + 1;
    });
    closeSync(memory);
    return true;
  } catch {
    // What this process cannot read itself, other processes of its user cannot read either.
    return parts.length === 0;
  }
}

/** Restarts the program in the same process, with blocks that never held the secret, and without variables for Node. */
function restart(args: string[], secret: string | undefined): void {
  const env = { ...process.env } as Record<string, string>;
  if (secret) {
    const path = join(tmpdir(), `.sandboxd-${process.pid}-${process.hrtime.bigint()}`);
    const file = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    writeSync(file, secret, 0);
    // Only descriptors 0 to 2 survive an exec: close 0, so that the next open gets it.
    closeSync(0);
    openSync(`/proc/self/fd/${file}`, 'r');
    env[HANDED_OVER] = '1';
  }
  const flags = new Set([...process.execArgv, ...NODE_FLAGS]);
  process.execve?.(process.execPath, [process.execPath, ...flags, ...args], env);
}

function takeHandedOver(): string {
  delete process.env[HANDED_OVER];
  const secret = readFileSync(0, 'utf8');
  closeSync(0);
  openSync('/dev/null', 'r');
  return secret;
}

/**
 * Keeps the secret out of core dumps. A change of the effective group and back makes the kernel protect the process
 * against dumps and reads by others. A process that may not change it excludes its memory from the dump instead.
 */
function keepMemoryPrivate(): void {
  try {
    const group = process.getegid?.() ?? 0;
    process.setegid?.(group === 65_534 ? 65_533 : 65_534);
    process.setegid?.(group);
  } catch {
    try {
      const filter = openSync('/proc/self/coredump_filter', 'w');
      writeSync(filter, '0');
      closeSync(filter);
    } catch {
      // The kernel has no such filter.
    }
  }
}
