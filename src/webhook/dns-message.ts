/** Types of records. */
export const [TYPE_A, TYPE_CNAME, TYPE_AAAA] = [1, 5, 28] as const;

const CLASS_IN = 1;
const HEAD_BYTES = 12;
const RECURSION_DESIRED = 0x0100;
const [IS_ANSWER, IS_CUT] = [0x8000, 0x0200];
const POINTER = 0xc0;
const [LABEL_MAX, NAME_MAX, LINKS_MAX] = [63, 253, 16];
const [OK, NO_SUCH_NAME] = [0, 3];

/** What a name server says. */
export interface DnsAnswer {
  /** `failed`: it could not find out. */
  state: 'known' | 'failed';
  /** Empty if there is no such name, or nothing of this type. */
  addresses: string[];
  /** Did not fit: the question must be asked over TCP. */
  is_cut: boolean;
}

/** A question for the addresses of a name; null for what is no name. Source: RFC 1035, section 4. */
export function dnsQuestion(id: number, name: string, type: number): Buffer | null {
  const labels = name.split('.').map((label) => Buffer.from(label, 'latin1'));
  const is_name = labels.every(({ length }) => length > 0 && length <= LABEL_MAX) && name.length <= NAME_MAX;
  if (!is_name || /[^\x21-\x7e]/.test(name)) return null;
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(id, 0);
  head.writeUInt16BE(RECURSION_DESIRED, 2);
  head.writeUInt16BE(1, 4);
  const end = Buffer.from([0, 0, type, 0, CLASS_IN]);
  return Buffer.concat([head, ...labels.flatMap((label) => [Buffer.from([label.length]), label]), end]);
}

/** The answer to a question; null for what is none. */
export function dnsAnswer(message: Buffer, question: Buffer, name: string, type: number): DnsAnswer | null {
  try {
    return parsed(message, question, name, type);
  } catch {
    return null; // it ends too early
  }
}

function parsed(message: Buffer, question: Buffer, name: string, type: number): DnsAnswer | null {
  const flags = message.readUInt16BE(2);
  const asked = message.subarray(HEAD_BYTES, question.length).toString('latin1').toLowerCase();
  const is_ours =
    message.readUInt16BE(0) === question.readUInt16BE(0) &&
    (flags & IS_ANSWER) !== 0 &&
    message.readUInt16BE(4) === 1 &&
    asked === question.subarray(HEAD_BYTES).toString('latin1').toLowerCase();
  if (!is_ours) return null;
  const code = flags & 0xf;
  const answer: DnsAnswer = {
    state: code === OK || code === NO_SUCH_NAME ? 'known' : 'failed',
    addresses: [],
    is_cut: (flags & IS_CUT) !== 0,
  };
  let at = question.length;
  let owner = name.toLowerCase();
  for (let left = message.readUInt16BE(6); left > 0; left--) {
    const named = nameAt(message, at);
    const length = message.readUInt16BE(named.end + 8);
    const data = named.end + 10;
    at = data + length;
    if (message.readUInt16BE(named.end + 2) !== CLASS_IN || named.name !== owner) continue;
    const kind = message.readUInt16BE(named.end);
    // Name servers put an alias before what it stands for.
    if (kind === TYPE_CNAME) owner = nameAt(message, data).name;
    else if (kind === type) answer.addresses.push(addressIn(message.subarray(data, at), type));
  }
  return answer;
}

function addressIn(data: Buffer, type: number): string {
  if (type === TYPE_A)
    return `${data.readUInt8(0)}.${data.readUInt8(1)}.${data.readUInt8(2)}.${data.readUInt8(3)}`;
  return Array.from({ length: 8 }, (_, i) => data.readUInt16BE(2 * i).toString(16)).join(':');
}

/** A name, in lower case, and where what follows it begins. Pointers lead back, and only so often. */
function nameAt(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  let end = -1;
  for (let links = 0; links < LINKS_MAX; ) {
    const length = message.readUInt8(at);
    if (length >= POINTER) {
      if (end < 0) end = at + 2;
      at = ((length & ~POINTER) << 8) | message.readUInt8(at + 1);
      links += 1;
    } else if (length === 0) {
      return { name: labels.join('.').toLowerCase(), end: end < 0 ? at + 1 : end };
    } else {
      if (labels.length > NAME_MAX) break;
      labels.push(message.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
  }
  throw new Error('a name without an end');
}
