import { expect, it } from 'vitest';
import { commandLine } from '../../src/ctl/ps.ts';

it('shows a command as it would be typed in a shell, on one line', () => {
  expect(commandLine(['ls', '-la', 'a b', "it's", ''])).toBe("ls -la 'a b' 'it'\\''s' ''");
  expect(commandLine(['printf', 'a\nb\u001b[31m'])).not.toMatch(/\p{Cc}/u);
});
