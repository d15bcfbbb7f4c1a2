import { describe, expect, it } from 'vitest';
import type { OutputPiece } from '../../../src/client/client.ts';
import { OutputSink } from '../../../src/ctl/terminal/output-sink.ts';
import { pipe } from '../../support/ctl/screen.ts';

function sink(json = false) {
  const [out, err] = [pipe(), pipe()];
  const to = new OutputSink({ out: out.out, err: err.out, json }, false);
  return { sink: to, out: out.text, err: err.text };
}

function piece(
  stream: 'stdout' | 'stderr',
  offset: number,
  text: string,
  encoding: BufferEncoding = 'utf8',
): OutputPiece {
  return { type: 'output', stream, offset, bytes: new Uint8Array(Buffer.from(text, encoding)) };
}

describe('the sink of output', () => {
  it('writes each stream where it belongs, as bytes', async () => {
    const { sink: to, out, err } = sink();
    await to.take(piece('stdout', 0, 'grün'));
    await to.take(piece('stderr', 7, 'ZXJy', 'base64'));
    expect([out(), err()]).toEqual(['grün', 'err']);
  });

  it('leaves out what comes again, also in part', async () => {
    const { sink: to, out } = sink();
    await to.take(piece('stdout', 0, 'abc'));
    await to.take(piece('stdout', 0, 'abc'));
    await to.take(piece('stdout', 1, 'bcdef'));
    expect(out()).toBe('abcdef');
  });

  it('tells what is missing', async () => {
    const { sink: to, out, err } = sink();
    await to.take(piece('stdout', 0, 'abc'));
    await to.take(piece('stdout', 10, 'x'));
    expect([out(), err()]).toEqual(['abcx', 'sandboxctl: 7 bytes of stdout are no longer kept\n']);
  });

  it('tells what is missing where nothing follows', async () => {
    const { sink: to, err } = sink();
    await to.take(piece('stdout', 0, 'abc'));
    for (let told = 0; told < 2; told++) await to.take({ type: 'gone', stream: 'stdout', offset: 9 });
    expect(err()).toBe('sandboxctl: 6 bytes of stdout are no longer kept\n');
  });

  it('prints a piece a line as JSON', async () => {
    const { sink: to, out } = sink(true);
    await to.take(piece('stdout', 3, 'a\n'));
    await to.take(piece('stdout', 5, '/w==', 'base64'));
    expect(out()).toBe(
      '{"type":"output","stream":"stdout","offset":3,"data":"a\\n"}\n' +
        '{"type":"output","stream":"stdout","offset":5,"data":"/w==","encoding":"base64"}\n',
    );
  });
});
