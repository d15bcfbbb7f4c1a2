import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Nothing but the page's own files and its own origin: no inline code or style, no frame around it, no text as code. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const GUARDS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** What the build made beside a file, the smallest first. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

const ROOT_FILE = 'index.html';
/** Files with a hash of their content in the name never change. */
const HASHED = 'assets/';

interface PageFile {
  type: string;
  cache: string;
  etag: string;
  /** By content coding; `identity` is always there. */
  bodies: Map<string, Buffer>;
}

/** What a request for a file says of itself. */
export interface PageRequest {
  accept_encoding: string | undefined;
  if_none_match: string | undefined;
}

/** An answer without its connection. */
export interface PageAnswer {
  status: 200 | 304;
  headers: Record<string, string>;
  body: Buffer | null;
}

/** The built page of the console with its files, in memory: nothing but what the build has made can be reached. */
export class PageFiles {
  readonly #files = new Map<string, PageFile>();

  /** Reads a folder of the build; one that is not there holds no files. */
  constructor(folder: string) {
    if (!existsSync(folder)) return;
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const known = names.filter((name) => TYPES[extname(name)] !== undefined);
    for (const name of known) this.#files.set(name, readFile(folder, name));
  }

  get is_empty(): boolean {
    return this.#files.size === 0;
  }

  /** The answer for a path below the page's own, '' for the page itself; null if there is no such file. */
  answer(path: string, { accept_encoding, if_none_match }: PageRequest): PageAnswer | null {
    const file = this.#files.get(path === '' ? ROOT_FILE : path);
    if (!file) return null;
    const coding = ENCODINGS.map(([name]) => name).find(
      (name) => accepts(accept_encoding, name) && file.bodies.has(name),
    );
    const etag = coding === undefined ? `"${file.etag}"` : `"${file.etag}-${coding}"`;
    const headers = { ...GUARDS, 'cache-control': file.cache, etag, vary: 'Accept-Encoding' };
    if (if_none_match?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)) {
      return { status: 304, headers, body: null };
    }
    const body = file.bodies.get(coding ?? 'identity') as Buffer;
    return {
      status: 200,
      headers: {
        ...headers,
        'content-type': file.type,
        'content-length': String(body.length),
        ...(coding === undefined ? {} : { 'content-encoding': coding }),
      },
      body,
    };
  }
}

/** The page that the build has made, beside the built program or, from source, in `dist`. */
export function consoleFiles(): PageFiles {
  const place = import.meta.url.endsWith('.cjs') ? './console/' : '../../../dist/console/';
  return new PageFiles(fileURLToPath(new URL(place, import.meta.url)));
}

/** What the page asks first: which program serves it. Contract section 7, "Console". */
export function servedBy(program: 'manager' | 'daemon'): PageAnswer {
  const body = Buffer.from(JSON.stringify({ program }));
  const headers = {
    ...GUARDS,
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(body.length),
  };
  return { status: 200, headers, body };
}

function readFile(folder: string, name: string): PageFile {
  const path = join(folder, name);
  const plain = readFileSync(path);
  const bodies = new Map([['identity', plain]]);
  for (const [coding, suffix] of ENCODINGS) {
    if (existsSync(path + suffix)) bodies.set(coding, readFileSync(path + suffix));
  }
  return {
    type: TYPES[extname(name)] as string,
    cache: name.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: createHash('sha256').update(plain).digest('base64url').slice(0, 22),
    bodies,
  };
}

/** Whether a client takes a content coding. Source: RFC 9110, section 12.5.3. */
function accepts(header: string | undefined, coding: string): boolean {
  const weighed = (header ?? '').split(',').map((each) =>
    each
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  );
  const named = weighed.find(([name]) => name === coding) ?? weighed.find(([name]) => name === '*');
  return named !== undefined && !/^q=0(\.0*)?$/.test(named[1] ?? '');
}
