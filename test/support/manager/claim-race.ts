import type { Client } from './manager-client.ts';

const PATH = '/api/v1/sandboxes';

/** What many claims at once came to, and how many sandboxes were active afterwards. */
export interface ClaimRaceResult {
  admitted: number;
  refused: number;
  other: string[];
  active: number;
}

/** So many claims at once, given to the clients in turn; what was admitted is deleted again. */
export async function claimsAtOnce(clients: Client[], count: number): Promise<ClaimRaceResult> {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, i) => (clients[i % clients.length] as Client).post(PATH)),
  );
  const [client] = clients as [Client];
  const active = (await client.get('/api/v1/quotas/active_sandboxes')).data.current;
  const admitted = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status, error }) => status === 429 && error?.code === 'quota_exceeded');
  const other = answers
    .filter((answer) => !admitted.includes(answer) && !refused.includes(answer))
    .map(({ status, error }) => `${status} ${error?.message}`);
  for (const { data } of admitted) await client.call('DELETE', `${PATH}/${data.sandbox_id}`);
  return { admitted: admitted.length, refused: refused.length, other, active };
}
