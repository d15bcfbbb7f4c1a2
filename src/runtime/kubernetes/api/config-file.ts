import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { parse } from 'yaml';
import { StartError } from '../../../contract/errors.ts';

/** Where a cluster's API is, and as whom it is asked. */
export interface ClusterAccess {
  /** `https://host:port`. */
  server: string;
  /** PEM; null: the system's authorities. */
  ca: Buffer | null;
  /** PEM of a client certificate; null: a token. */
  client: { cert: Buffer; key: Buffer } | null;
  /** The bearer token of now: those of service accounts are replaced on the disk. */
  token: () => string | null;
  namespace: string;
  /** What it is called, as `cluster_id`. */
  name: string;
}

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const IN_CLUSTER_NAME = 'kubernetes';
/** The API's name in clusters that resolve names; its certificate has the address as well. */
const API_NAME = 'kubernetes.default.svc';
const API_PORT = '443';
const DEFAULT_NAMESPACE = 'default';

/**
 * The access that a kubeconfig's current context gives, or, without a path, that of the Pod's service account.
 * `namespace` takes precedence over both. Throws StartError with one line.
 */
export function clusterAccess(
  path: string | null,
  namespace: string | null,
  account = ACCOUNT,
): ClusterAccess {
  return path === null ? inCluster(namespace, account) : fromKubeconfig(path, namespace);
}

function inCluster(namespace: string | null, folder: string): ClusterAccess {
  const token_file = `${folder}/token`;
  if (!existsSync(token_file)) {
    throw new StartError('--kubeconfig is required outside of a cluster: there is no service account here');
  }
  const part = (name: string): Buffer => {
    try {
      return readFileSync(`${folder}/${name}`);
    } catch (error) {
      throw new StartError(`the service account of this Pod cannot be read: ${(error as Error).message}`);
    }
  };
  // As every Pod is told: a cluster need not resolve names.
  const { KUBERNETES_SERVICE_HOST: host = API_NAME, KUBERNETES_SERVICE_PORT: port = API_PORT } = process.env;
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    ca: part('ca.crt'),
    client: null,
    token: () => readFileSync(token_file, 'utf8').trim(),
    namespace: namespace ?? part('namespace').toString().trim(),
    name: IN_CLUSTER_NAME,
  };
}

type Entry = Record<string, unknown>;

function fromKubeconfig(path: string, namespace: string | null): ClusterAccess {
  const fail = (problem: string) => new StartError(`--kubeconfig ${path} ${problem}`);
  let content: Entry;
  try {
    content = parse(readFileSync(path, 'utf8')) as Entry;
  } catch (error) {
    throw fail(`cannot be read: ${(error as Error).message.split('\n')[0]}`);
  }
  const named = (list: string, name: unknown, kind: string): Entry => {
    const found = (Array.isArray(content?.[list]) ? (content[list] as Entry[]) : []).find(
      (each) => each?.name === name,
    );
    if (!found?.[kind]) throw fail(`has no ${kind} ${JSON.stringify(name ?? null)}`);
    return found[kind] as Entry;
  };
  const context = named('contexts', content?.['current-context'], 'context');
  const cluster = named('clusters', context.cluster, 'cluster');
  const user = named('users', context.user, 'user');
  if (
    typeof cluster.server !== 'string' ||
    !/^https:/.test(cluster.server) ||
    !URL.canParse(cluster.server)
  ) {
    throw fail('names no https:// server');
  }
  if (cluster['insecure-skip-tls-verify']) {
    throw fail("has insecure-skip-tls-verify: the cluster's certificate must be checked");
  }
  if (user.exec || user['auth-provider']) {
    throw fail('asks another program for credentials: use the token of a service account');
  }
  const bytes = (from: Entry, key: string): Buffer | null => {
    const data = from[`${key}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64');
    const file = from[key];
    if (typeof file !== 'string') return null;
    try {
      return readFileSync(resolve(dirname(path), file));
    } catch (error) {
      throw fail(`names a file of ${key} that cannot be read: ${(error as Error).message}`);
    }
  };
  const cert = bytes(user, 'client-certificate');
  const key = bytes(user, 'client-key');
  const ca = bytes(cluster, 'certificate-authority');
  try {
    createSecureContext({ ...(ca ? { ca } : {}), ...(cert && key ? { cert, key } : {}) });
  } catch (error) {
    throw fail(`has a certificate or key that cannot be used: ${(error as Error).message}`);
  }
  const { token, tokenFile } = user;
  const token_file = typeof tokenFile === 'string' ? resolve(dirname(path), tokenFile) : null;
  if (typeof token !== 'string' && token_file === null && !(cert && key)) {
    throw fail('has neither a token nor a client certificate');
  }
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ca,
    client: cert && key ? { cert, key } : null,
    token: () => {
      if (typeof token === 'string') return token;
      return token_file === null ? null : readFileSync(token_file, 'utf8').trim();
    },
    namespace: namespace ?? (typeof context.namespace === 'string' ? context.namespace : DEFAULT_NAMESPACE),
    name: String(context.cluster),
  };
}
