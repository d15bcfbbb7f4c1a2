import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const RECEIVERS = ['node.mjs', 'python.py', 'go/main.go', 'ruby.rb', 'php.php', 'shell.sh'];

describe('the README', () => {
  it.each(RECEIVERS)('shows the tested receiver %s as it is', (name) => {
    expect(readme).toContain(readFileSync(join(ROOT, 'fixtures/receivers', name), 'utf8'));
  });

  it('names every dependency with its reason', () => {
    const names = [
      ...Object.keys(manifest.dependencies),
      ...Object.keys(manifest.optionalDependencies),
      ...Object.keys(manifest.devDependencies).filter((name) => !name.startsWith('@types/')),
    ];
    expect(names.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});
