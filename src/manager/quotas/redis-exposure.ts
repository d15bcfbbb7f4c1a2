import { Redis } from 'ioredis';

const ANSWER_MS = 1_000;

/** Whether Redis or Valkey takes commands from somebody who knows no password. False for one that does not answer. */
export async function letsAnybodyCommand(url: string): Promise<boolean> {
  const address = new URL(url);
  // Without one of its own the manager could not use a server that asks for it.
  if (address.password === '') return true;
  address.username = '';
  address.password = '';
  const redis = new Redis(address.href, {
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
  });
  redis.on('error', () => {});
  try {
    await redis.connect();
    await redis.exists('sandbox-manager');
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}
