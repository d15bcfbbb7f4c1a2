import { connect, type NetConnectOpts } from 'node:net';

export interface ExchangeOptions {
  /** Ends the connection from here once nothing has come for so long after the first answer. */
  quiet_ms?: number;
  /** Ends the connection from here at the latest. */
  within_ms?: number;
}

/** Sends bytes as they are; gives all that came back, as latin1, until either side ended the connection. */
export function exchange(
  where: NetConnectOpts,
  bytes: Buffer | string,
  { quiet_ms, within_ms = 20_000 }: ExchangeOptions = {},
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(where).setEncoding('latin1');
    let answer = '';
    let quiet: NodeJS.Timeout | undefined;
    const end = () => socket.destroy();
    const late = setTimeout(end, within_ms);
    socket.on('data', (text) => {
      answer += text;
      if (quiet_ms === undefined) return;
      clearTimeout(quiet);
      quiet = setTimeout(end, quiet_ms);
    });
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => {
      clearTimeout(late);
      clearTimeout(quiet);
      resolve(answer);
    });
    socket.write(bytes);
  });
}

export interface RawAnswer {
  status: number;
  /** The status line and the headers. */
  head: string;
  body: string;
}

/** The answers in what `exchange` gave, in their order; one that is no HTTP has the status 0. */
export function answersOf(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const head = end < 0 ? rest : rest.slice(0, end);
    const after = end < 0 ? '' : rest.slice(end + 4);
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
    // The answer to HEAD has the length of a body alone.
    const body = after.startsWith('HTTP/1.1 ') ? '' : after.slice(0, length);
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
    answers.push({ status, head, body });
    // Without a length the body is all that follows.
    rest = status >= 200 && !/^content-length:/im.test(head) ? '' : after.slice(body.length);
  }
  return answers;
}
