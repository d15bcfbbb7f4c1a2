import { describe, expect, it } from 'vitest';
import type { Context } from '../../../src/ctl/context.ts';
import { OutputSink } from '../../../src/ctl/terminal/output-sink.ts';
import { pipe } from '../../support/ctl/screen.ts';

function sink(json = false) {
  const [out, err] = [pipe(), pipe()];
  const context = { out: out.out, err: err.out, json } as unknown as Context;
  return { sink: new OutputSink(context, false), out: out.text, err: err.text };
}

describe('the sink of output', () => {
  it('writes each stream where it belongs, as bytes', async () => {
    const { sink: to, out, err } = sink();
    await to.take({ stream: 'stdout', offset: 0, data: 'grün' });
    await to.take({ stream: 'stderr', offset: 7, data: 'ZXJy', encoding: 'base64' });
    expect([out(), err(), to.position]).toEqual(['grün', 'err', { stdout: 5, stderr: 10 }]);
  });

  it('leaves out what comes again, also in part', async () => {
    const { sink: to, out } = sink();
    await to.take({ stream: 'stdout', offset: 0, data: 'abc' });
    await to.take({ stream: 'stdout', offset: 0, data: 'abc' });
    await to.take({ stream: 'stdout', offset: 1, data: 'bcdef' });
    expect(out()).toBe('abcdef');
  });

  it('tells what is missing', async () => {
    const { sink: to, out, err } = sink();
    await to.take({ stream: 'stdout', offset: 0, data: 'abc' });
    await to.take({ stream: 'stdout', offset: 10, data: 'x' });
    expect([out(), err()]).toEqual(['abcx', 'sandboxctl: 7 bytes of stdout are no longer kept\n']);
  });

  it('prints a piece a line as JSON', async () => {
    const { sink: to, out } = sink(true);
    await to.take({ stream: 'stdout', offset: 3, data: 'a\n' });
    await to.take({ stream: 'stdout', offset: 5, data: '/w==', encoding: 'base64' });
    expect(out()).toBe(
      '{"type":"output","stream":"stdout","offset":3,"data":"a\\n"}\n' +
        '{"type":"output","stream":"stdout","offset":5,"data":"/w==","encoding":"base64"}\n',
    );
  });
});
