import { Redis } from 'ioredis';

const ANSWER_MS = 1_000;

/** Whether Redis or Valkey accepts commands without a password. False for a server that does not answer within 1 s. */
export async function letsAnybodyCommand(url: string): Promise<boolean> {
  const address = new URL(url);
  // The manager itself connects without a password, so the server cannot require one.
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
