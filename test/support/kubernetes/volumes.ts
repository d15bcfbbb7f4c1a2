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
    const path = this.#client.path('persistentvolumeclaims');
    const list = await this.#client.get<ObjectList<VolumeClaim>>(path);
    this.#work = this.#follow(path, list?.metadata.resourceVersion ?? '0');
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
    this.#client.close();
  }

  async #follow(path: string, version: string): Promise<void> {
    while (!this.#over.signal.aborted) {
      try {
        const events = this.#client.watch<VolumeClaim>(path, version, this.#over.signal);
        for await (const { type, object } of events) {
          if (type === 'ADDED') await this.#provide(object);
          if (type === 'DELETED') await this.#withdraw(object);
          version = object.metadata.resourceVersion ?? version;
        }
      } catch {
        // The API is away, as some tests want it: from there on it goes on.
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }

  async #provide({ metadata, ...claim }: VolumeClaim): Promise<void> {
    const { storageClassName = STORAGE_CLASS, resources } = (claim as unknown as Claimed).spec;
    if (storageClassName !== STORAGE_CLASS) return;
    const folder = join(this.#folder, metadata.uid);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
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
  }

  async #withdraw({ metadata }: VolumeClaim): Promise<void> {
    await this.#client.remove(`${VOLUMES}/pv-${metadata.uid}`);
    rmSync(join(this.#folder, metadata.uid), { recursive: true, force: true });
  }
}

interface Claimed {
  metadata: { name: string; uid: string; namespace: string };
  spec: { storageClassName?: string; resources: { requests: object } };
}
