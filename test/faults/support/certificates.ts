import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execaSync } from 'execa';
import type { Scene } from './scene.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

export interface KeyPair {
  key: string;
  cert: string;
}

interface Subject {
  name?: string;
  from?: Date;
  to?: Date;
}

/** A certificate authority of the case's own. */
export class Authority {
  readonly #folder: string;
  #made = 0;

  /** `folder` is its name in the scene's folder. */
  constructor(scene: Scene, folder = 'authority') {
    this.#folder = scene.path(folder);
    mkdirSync(this.#folder);
    this.#openssl([
      'req',
      '-x509',
      ...this.#newKey('ca.key'),
      '-out',
      'ca.crt',
      '-days',
      '7',
      '-subj',
      '/CN=test-ca',
    ]);
    writeFileSync(join(this.#folder, 'index.txt'), '');
    writeFileSync(join(this.#folder, 'serial'), '01\n');
  }

  /** Whoever reads this file trusts what `issue` makes. */
  get certificate_file(): string {
    return join(this.#folder, 'ca.crt');
  }

  /** A certificate for a name (`localhost`), valid from yesterday to tomorrow unless told otherwise. */
  issue({ name = 'localhost', from, to }: Subject = {}): KeyPair {
    const id = `leaf-${++this.#made}`;
    writeFileSync(join(this.#folder, `${id}.cnf`), configuration(name));
    this.#openssl(['req', ...this.#newKey(`${id}.key`), '-out', `${id}.csr`, '-subj', `/CN=${name}`]);
    this.#openssl([
      ...['ca', '-batch', '-notext', '-config', `${id}.cnf`, '-cert', 'ca.crt', '-keyfile', 'ca.key'],
      ...['-in', `${id}.csr`, '-out', `${id}.crt`, '-extensions', 'leaf'],
      ...['-startdate', stamp(from ?? new Date(Date.now() - DAY_MS))],
      ...['-enddate', stamp(to ?? new Date(Date.now() + DAY_MS))],
    ]);
    return { key: this.#read(`${id}.key`), cert: this.#read(`${id}.crt`) };
  }

  #newKey(file: string): string[] {
    return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', file];
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder, file), 'utf8');
  }

  #openssl(args: string[]): void {
    execaSync('openssl', args, { cwd: this.#folder });
  }
}

function configuration(name: string): string {
  return `
[ca]
default_ca = authority
[authority]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[leaf]
subjectAltName = DNS:${name}
`;
}

/** The way in which certificates spell times: 20200101000000Z. */
function stamp(date: Date): string {
  return `${date.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
}
