import { request } from 'node:http';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export interface Following {
  /** Of the output, as bytes. */
  url: string;
  authorization: string;
}

export type OutputClientVerbs = {
  /** Follows output to its end and forgets it; gives how many bytes there were, and when the last had come. */
  follow: (following: Following) => Promise<{ bytes: number; ended_ms: number }>;
};

/** In a process of its own, as the one that reads a pipe is: the heap of the benchmarks would be collected for each piece. */
function follow({ url, authorization }: Following): Promise<{ bytes: number; ended_ms: number }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, accept: 'application/octet-stream' };
    const sent = request(url, { headers }, (response) => {
      let bytes = 0;
      response.on('data', (data: Buffer) => {
        bytes += data.length;
      });
      response.on('end', () => resolve({ bytes, ended_ms: nowMs() }));
      response.on('error', reject);
    });
    sent.on('error', reject).end();
  });
}

serve<OutputClientVerbs>({ follow });
