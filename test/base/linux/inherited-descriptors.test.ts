import { execFileSync, type StdioOptions } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

describe("descriptors of a program's parent", () => {
  it('are closed at the beginning of a program, unless they are named', () => {
    const file = fileURLToPath(new URL('../../../src/base/linux/inherited-descriptors.ts', import.meta.url));
    const program = `import { existsSync } from 'node:fs';
      import { closeInherited } from '${file}';
      const open = () => ['30', '31', '32'].filter((fd) => existsSync('/proc/self/fd/' + fd));
      const before = open();
      closeInherited(['--token-file=/dev/fd/31', undefined]);
      console.log(JSON.stringify([before, open()]));`;
    const fd = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(fd));
    const stdio: StdioOptions = ['ignore', 'pipe', 'inherit', ...Array(27).fill('ignore'), fd, fd, fd];
    const args = ['--input-type=module', '--eval', program];
    const printed = execFileSync(process.execPath, args, { stdio, encoding: 'utf8' });
    expect(JSON.parse(printed)).toEqual([['30', '31', '32'], ['31']]);
  });
});
