import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ClusterClient, ClusterRefusal } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import type { ClusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import type { ObjectList, VolumeClaim } from '../../../src/runtime/kubernetes/api/objects.ts';

const VOLUMES = '/api/v1/persistentvolumes';
/** The default class of the cluster, as a provider of volumes would have one. */
export const STORAGE_CLASS = 'folders';

/** Gives every claim of a namespace a folder of this machine, as a provider of volumes would, until `stop`. */
export class FolderVolumes {
  readonly #client: ClusterClient;
  readonly #folder: string;
  readonly #over = new AbortController();
  /** What is done with each new folder before a Pod can have it. */
  onFolder: (folder: string) => void = () => {};
  /** The uids of claims that have a volume. */
  readonly #provided = new Set<string>();
  #work: Promise<void> = Promise.resolve();

  constructor(access: ClusterAccess, folder: string) {
    this.#client = new ClusterClient(access);
    this.#folder = folder;
  }

  async start(): Promise<void> {
    await this.#client.create('/apis/storage.k8s.io/v1/storageclasses', {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', provisioner: 'test/folders' },
      metadata: {
        name: STORAGE_CLASS,
        annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
      },
    });
    this.#work = this.#follow();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
    this.#client.close();
  }

  /** The folder of a claim's volume. */
  folderOf(uid: string): string {
    return join(this.#folder, uid);
  }

  async #follow(): Promise<void> {
    const path = this.#client.path('persistentvolumeclaims');
    while (!this.#over.signal.aborted) {
      try {
        // After a watch that has ended, what it would have told is only in the list.
        const version = await this.#list(path);
        for await (const { type, object } of this.#client.watch<VolumeClaim>(
          path,
          version,
          this.#over.signal,
        )) {
          if (type === 'ERROR') break;
          if (type === 'ADDED') await this.#provide(object);
          if (type === 'DELETED') await this.#withdraw(object.metadata.uid);
        }
      } catch {
        // The API is away, as some tests want it.
      }
      if (!this.#over.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async #list(path: string): Promise<string> {
    const list = await this.#client.get<ObjectList<VolumeClaim>>(path);
    const claims = list?.items ?? [];
    for (const claim of claims) await this.#provide(claim);
    const uids = new Set(claims.map(({ metadata }) => metadata.uid));
    for (const uid of this.#provided) if (!uids.has(uid)) await this.#withdraw(uid);
    return list?.metadata.resourceVersion ?? '0';
  }

  async #provide({ metadata, ...claim }: VolumeClaim): Promise<void> {
    const { storageClassName = STORAGE_CLASS, resources } = (claim as unknown as Claimed).spec;
    if (storageClassName !== STORAGE_CLASS || this.#provided.has(metadata.uid)) return;
    const folder = this.folderOf(metadata.uid);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    this.onFolder(folder);
    const { name, uid, namespace } = metadata as unknown as Claimed['metadata'];
    try {
      await this.#client.create(VOLUMES, {
        ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${uid}` } },
        spec: {
          capacity: resources.requests,
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: STORAGE_CLASS,
          hostPath: { path: folder },
          claimRef: { name, uid, namespace, kind: 'PersistentVolumeClaim', apiVersion: 'v1' },
        },
      });
    } catch (error) {
      if (!(error instanceof ClusterRefusal) || error.status !== 409) throw error;
    }
    this.#provided.add(uid);
  }

  async #withdraw(uid: string): Promise<void> {
    await this.#client.remove(`${VOLUMES}/pv-${uid}`);
    rmSync(this.folderOf(uid), { recursive: true, force: true });
    this.#provided.delete(uid);
  }
}

interface Claimed {
  metadata: { name: string; uid: string; namespace: string };
  spec: { storageClassName?: string; resources: { requests: object } };
}
