import { METHODS, ODD_HEADERS, ODD_METHODS, ODD_PATHS, ODD_VERSIONS } from './odd-values.ts';
import { Random } from './random.ts';

/** What requests are aimed at, and what they carry. */
export interface RawTarget {
  /** The value of a good Host header. */
  host: string;
  /** Paths with which most requests begin. */
  paths: readonly string[];
  /** Header lines that most requests carry, such as an authorization. */
  headers: readonly string[];
  /** Whole requests that hide in bodies and behind heads: none of them may ever be carried out. */
  hidden: readonly string[];
  /** A body for a POST; `n` is the request's number. */
  body: (n: number) => string;
}

export interface RawRequest {
  /** Its number, as in its body. */
  n: number;
  bytes: Buffer;
  /** What is wrong or odd about it. */
  tricks: string[];
  /** A server must refuse it, whatever its path. */
  is_refused: boolean;
  /** It is an ordinary request, with nothing odd. */
  is_plain: boolean;
}

/** A request on its way to bytes. */
interface Draft {
  method: string;
  path: string;
  version: string;
  headers: string[];
  body: Buffer;
  /** `length` and `chunks` are written as HTTP says; otherwise a trick has written its own. */
  framing: 'length' | 'chunks' | 'own' | 'none';
  line_end: string;
}

type Trick = (draft: Draft, random: Random, target: RawTarget) => void;

/** What does not by itself make a request wrong. */
const ODD: Record<string, Trick> = {
  method: (draft, random) => {
    draft.method = random.pick([...METHODS, ...ODD_METHODS]);
  },
  path: (draft, random) => {
    draft.path = random.pick(ODD_PATHS);
  },
  version: (draft, random) => {
    draft.version = random.pick(ODD_VERSIONS);
  },
  header: (draft, random) => {
    draft.headers.push(random.pick(ODD_HEADERS));
  },
  absolute: (draft, _random, { host }) => {
    draft.path = `http://${host}${draft.path}`;
  },
  'many headers': (draft, random) => {
    const length = random.pick([50, 1_000, 3_000]);
    draft.headers.push(...Array.from({ length }, (_, i) => `X${i}: 1`));
  },
  'large header': (draft, random) => {
    draft.headers.push(`X-Large: ${'x'.repeat(random.pick([1_000, 15_000, 20_000, 100_000]))}`);
  },
  chunks: (draft) => {
    draft.framing = 'chunks';
  },
  'bare line feeds': (draft) => {
    draft.line_end = '\n';
  },
  'a body on anything': (draft, random) => {
    draft.method = random.pick(METHODS);
    draft.framing = random.pick(['length', 'chunks']);
  },
  'hidden in the body': (draft, random, { hidden }) => {
    draft.body = Buffer.from(random.pick(hidden), 'latin1');
    draft.method = random.pick(['GET', 'HEAD', 'DELETE', 'POST', 'OPTIONS']);
    draft.framing = random.pick(['length', 'chunks']);
  },
};

const own = (draft: Draft, ...lines: string[]): void => {
  draft.framing = 'own';
  draft.headers.push(...lines);
};

/** What a server must refuse, or it can be made to see another request than the client sent. */
const WRONG: Record<string, Trick> = {
  'no host': (draft) => {
    draft.headers = draft.headers.filter((line) => !line.startsWith('Host:'));
  },
  'foreign host': (draft) => {
    draft.headers = draft.headers.map((line) => (line.startsWith('Host:') ? 'Host: evil.test' : line));
  },
  'two hosts': (draft, random) => {
    draft.headers.splice(random.below(draft.headers.length), 0, 'Host: evil.test');
  },
  'foreign authority': (draft) => {
    draft.path = `http://evil.test${draft.path}`;
  },
  'foreign origin': (draft) => {
    draft.headers.push('Origin: http://evil.test');
  },
  'a length and chunks': (draft, random, { hidden }) => {
    const text = random.pick(hidden);
    draft.body = Buffer.from(`0\r\n\r\n${text}`, 'latin1');
    own(draft, `Content-Length: ${draft.body.length}`, 'Transfer-Encoding: chunked');
  },
  'two lengths': (draft, random, { hidden }) => {
    const text = random.pick(hidden);
    own(draft, `Content-Length: ${draft.body.length}`, `Content-Length: ${draft.body.length + text.length}`);
    draft.body = Buffer.concat([draft.body, Buffer.from(text, 'latin1')]);
  },
  'a length that is none': (draft, random) => {
    own(
      draft,
      `Content-Length: ${random.pick(['-5', '+5', '0x10', '5, 6', '1e3', '99999999999999999999', 'five'])}`,
    );
  },
  'an odd transfer coding': (draft, random) => {
    own(
      draft,
      random.pick([
        ...[
          'Transfer-Encoding: xchunked',
          'Transfer-Encoding: chunked, identity',
          'Transfer-Encoding : chunked',
        ],
        ...['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
      ]),
    );
  },
  'chunks that are none': (draft, random) => {
    own(draft, 'Transfer-Encoding: chunked');
    draft.body = Buffer.from(
      random.pick(['zz\r\nx\r\n0\r\n\r\n', 'ffffffffffffffffff\r\n', '-1\r\n\r\n', '5\r\nabc\r\n0\r\n\r\n']),
    );
  },
  'a header without a name': (draft, random) => {
    draft.headers.push(random.pick([': x', 'no colon', 'Bad Name: x', 'X: a\0b', 'X\r: y']));
  },
};

/** Requests without end, the same for the same seed: plain ones, odd ones and wrong ones, alone and pipelined. */
export function* rawRequests(seed: number, target: RawTarget): Generator<RawRequest> {
  const random = new Random(seed);
  for (let n = 0; ; n++) {
    if (random.chance(0.03)) {
      yield { ...NOTHING, n, bytes: garbage(random), tricks: ['garbage'] };
      continue;
    }
    const one = request(n, random, target);
    if (random.chance(0.1)) yield broken(one, random);
    else if (random.chance(0.12)) yield pipelined(one, random, n, target);
    else yield one;
  }
}

const NOTHING = { is_refused: false, is_plain: false };

function request(n: number, random: Random, target: RawTarget): RawRequest {
  const draft: Draft = {
    method: 'POST',
    path: random.pick(target.paths),
    version: 'HTTP/1.1',
    headers: [`Host: ${target.host}`, 'Content-Type: application/json', ...target.headers],
    body: Buffer.from(target.body(n)),
    framing: 'length',
    line_end: '\r\n',
  };
  const odd = random.chance(0.3) ? [] : names(ODD, random, 1 + random.below(3));
  const wrong = random.chance(0.6) ? [] : names(WRONG, random, 1);
  for (const name of odd) ODD[name]?.(draft, random, target);
  for (const name of wrong) WRONG[name]?.(draft, random, target);
  const tricks = [...odd, ...wrong];
  return { n, bytes: written(draft), tricks, is_refused: wrong.length > 0, is_plain: tricks.length === 0 };
}

function names(tricks: Record<string, Trick>, random: Random, count: number): string[] {
  return [...new Set(Array.from({ length: count }, () => random.pick(Object.keys(tricks))))];
}

function written({ method, path, version, headers, body, framing, line_end }: Draft): Buffer {
  const framed = framing === 'chunks' ? chunked(body) : framing === 'none' ? Buffer.alloc(0) : body;
  const lines = [`${method} ${path} ${version}`, ...headers];
  if (framing === 'length') lines.push(`Content-Length: ${body.length}`);
  if (framing === 'chunks') lines.push('Transfer-Encoding: chunked');
  return Buffer.concat([Buffer.from(lines.join(line_end) + line_end + line_end, 'latin1'), framed]);
}

function chunked(body: Buffer): Buffer {
  const half = Math.ceil(body.length / 2);
  const pieces = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  const chunks = pieces.flatMap((piece) => [`${piece.length.toString(16)}\r\n`, piece, '\r\n']);
  return Buffer.concat([...chunks, '0\r\n\r\n'].map((piece) => Buffer.from(piece as string, 'latin1')));
}

/** Cut off, or with a few bytes changed. */
function broken({ n, bytes, tricks }: RawRequest, random: Random): RawRequest {
  if (random.chance(0.3)) {
    return {
      ...NOTHING,
      n,
      bytes: bytes.subarray(0, random.below(bytes.length)),
      tricks: [...tricks, 'cut off'],
    };
  }
  const changed = Buffer.from(bytes);
  for (let i = 0; i <= random.below(4); i++) changed[random.below(changed.length)] = random.below(256);
  return { ...NOTHING, n, bytes: changed, tricks: [...tricks, 'changed bytes'] };
}

function pipelined(first: RawRequest, random: Random, n: number, target: RawTarget): RawRequest {
  const others = Array.from({ length: 1 + random.below(4) }, () =>
    random.chance(0.5) ? request(n, random, target).bytes : Buffer.from(random.pick(target.hidden), 'latin1'),
  );
  return {
    ...NOTHING,
    n,
    bytes: Buffer.concat([first.bytes, ...others]),
    tricks: [...first.tricks, 'pipelined'],
  };
}

function garbage(random: Random): Buffer {
  const kind = random.below(4);
  if (kind === 0) return Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  if (kind === 1) return Buffer.from('16030100c8010000c40303', 'hex');
  if (kind === 2) return Buffer.from('\r\n'.repeat(random.below(50)));
  return random.bytes(1 + random.below(2_000));
}
