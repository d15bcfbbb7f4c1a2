import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { SANDBOXD } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const without = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status !== 0;
const skipped = (shell: string) => (without(shell) ? ' (skipped: it is not installed here)' : '');

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await run(['completion', shell]);
  expect(code).toBe(0);
  return stdout;
}

describe.skipIf(without('bash'))(`sandboxctl completion bash${skipped('bash')}`, () => {
  let script: string;

  beforeAll(async () => {
    script = await scriptFor('bash');
  });

  /** What bash offers where these words are typed and the cursor stands at the end of the last. */
  function offered(...words: string[]): string[] {
    return offeredBy('sandboxctl', script, ...words);
  }

  function offeredBy(name: string, completion: string, ...words: string[]): string[] {
    const program = `${completion}
COMP_WORDS=(${name} "$@"); COMP_CWORD=$#; COMPREPLY=(); _${name}; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-uc', program, 'bash', ...words], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  }

  it('offers commands, their options and the values of these', () => {
    expect(offered('p')).toEqual(['publish', 'ps']);
    expect(offered('')).toEqual(
      expect.arrayContaining(['publish', 'listen', 'deliveries', '--url', '--json']),
    );
    expect(offered('deliveries', '--sta')).toEqual(['--state', '--state-dir']);
    expect(offered('deliveries', '--state', 'f')).toEqual(['failed', 'foreign']);
    expect(offered('--json', 'deliveries', '--event-type', 'file')).toEqual(['file.modified']);
    expect(offered('logs', '--stream', 's')).toEqual(['stdout', 'stderr']);
    expect(offered('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
  });

  it("offers the other programs' options and commands", () => {
    const scriptOf = (name: string) =>
      spawnSync(join(dirname(SANDBOXD), `${name}.cjs`), ['completion', 'bash'], { encoding: 'utf8' }).stdout;
    const daemon = scriptOf('sandboxd');
    expect(offeredBy('sandboxd', daemon, '--restart', 'on')).toEqual(['on-failure']);
    expect(offeredBy('sandboxd', daemon, '--webhook-s')).toEqual([
      '--webhook-secret-file',
      '--webhook-secret',
    ]);
    const manager = scriptOf('sandbox-manager');
    expect(offeredBy('sandbox-manager', manager, 'to')).toEqual(['token']);
    expect(offeredBy('sandbox-manager', manager, 'token', 'r')).toEqual(['revoke']);
    expect(offeredBy('sandbox-manager', manager, 'token', 'create', '--te')).toEqual(['--team']);
  });

  it('offers files where a path is asked for, and nothing where any text is', () => {
    expect(offered('listen', '--secret-file', '/etc/pass')).toContain('/etc/passwd');
    expect(offered('run', '--cwd', '/et')).toContain('/etc');
    expect(offered('publish', '--idempotency-key', '')).toEqual([]);
  });
});

describe.each(['zsh', 'fish'])('sandboxctl completion', (shell) => {
  it(`names every command and option for ${shell}`, async () => {
    const script = await scriptFor(shell);
    for (const word of ['publish', 'listen', 'deliveries', 'idempotency-key', 'pending delivered failed']) {
      expect(script).toContain(word);
    }
  });

  it.skipIf(without(shell))(`is a script that ${shell} can read${skipped(shell)}`, async () => {
    const script = join(scratchFolder(), 'script');
    writeFileSync(script, await scriptFor(shell));
    const { status, stderr } = spawnSync(shell, ['-n', script], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  });
});
