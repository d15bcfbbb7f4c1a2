import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { managerConfig } from '../../../src/manager/config/config.ts';
import { readConfigFile } from '../../../src/manager/config/config-file.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('the config file', () => {
  it('is YAML with keys and values, or empty', () => {
    const path = join(scratchFolder(), 'config.yaml');
    writeFileSync(path, 'metering: off\nreplicas: 1\nallow_webhook_cidr: [10.0.0.0/8]\n');
    expect(managerConfig({}, {}, readConfigFile(path))).toMatchObject({ metering: false });
    writeFileSync(path, '');
    expect(readConfigFile(path)).toEqual({});
  });

  it.each(['- a\n- b\n', 'a: [', 'a: 1\na: 2\n', 'just text'])('is refused in one line: %j', (text) => {
    const path = join(scratchFolder(), 'config.yaml');
    writeFileSync(path, text);
    expect(() => readConfigFile(path)).toThrow(/^--config [^\n]+$/);
  });

  it('is refused where it is missing', () => {
    expect(() => readConfigFile('/nowhere/config.yaml')).toThrow(/^--config \/nowhere\/config.yaml cannot/);
  });
});
