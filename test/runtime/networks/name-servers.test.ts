import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readNameServers } from '../../../src/runtime/networks/name-servers.ts';
import { scratchFolder } from '../../support/scratch.ts';

function read(...contents: string[]) {
  const folder = scratchFolder();
  const paths = contents.map((content, i) => {
    const path = join(folder, `${i}.conf`);
    writeFileSync(path, content);
    return path;
  });
  return readNameServers([...paths, join(folder, 'missing')]);
}

it.each([
  [
    'as they are',
    ['nameserver 192.0.2.1\nnameserver ::1\nnameserver 2001:db8::1'],
    ['192.0.2.1', '2001:db8::1'],
    null,
  ],
  ["behind systemd's stub", ['nameserver 127.0.0.53', 'nameserver 192.0.2.1'], ['192.0.2.1'], null],
  ["on the host's loopback alone", ['# x\nnameserver 127.0.0.1\n', 'nothing'], [], '127.0.0.1'],
  ['on a link of the host alone, which sandboxes do not have', ['nameserver fe80::1%eth0'], [], null],
  ['not at all', [''], [], null],
])('name servers are read %s', (_name, contents, name_servers, local_name_server) => {
  expect(read(...contents)).toMatchObject({ name_servers, local_name_server });
});

it('the settings of the file that names the servers are kept', () => {
  const stub = 'nameserver 127.0.0.53\noptions trust-ad';
  const file = 'search example.com\n# comment\nnameserver 192.0.2.1\noptions ndots:2';
  expect(read(stub, file).settings).toEqual(['search example.com', 'options ndots:2']);
});
