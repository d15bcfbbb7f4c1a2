import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Service } from '../base/service.ts';
import type { FileService, FileServiceParts } from './api/files/file-service.ts';

/** In the state directory: what file operations keep there. */
const FOLDER = 'files';

/** The file operations of a daemon, which most sandboxes never ask for: loaded with the first request for them. */
export class LazyFiles implements Service {
  readonly #parts: Omit<FileServiceParts, 'folder'>;
  readonly #folder: string;
  #service: Promise<FileService> | null = null;

  constructor(parts: Omit<FileServiceParts, 'folder'>) {
    this.#parts = parts;
    this.#folder = join(parts.config.state_dir, FOLDER);
  }

  /** Has removed what uploads of an earlier daemon have left: wherever that is, the start does not wait for it. */
  async start(): Promise<void> {
    if (!existsSync(this.#folder)) return;
    const { setLeftoversAside } = await import('../files/change/upload-journal.ts');
    if (!setLeftoversAside(this.#folder)) return;
    void this.load()
      .then((service) => service.removeLeftovers())
      .catch(({ message: reason }: Error) => {
        this.#parts.log.warn({ reason }, 'what unfinished uploads have left could not be removed');
      });
  }

  /** The service, loaded once. */
  load(): Promise<FileService> {
    this.#service ??= import('./api/files/file-service.ts').then(({ FileService }) => {
      return new FileService({ ...this.#parts, folder: this.#folder });
    });
    return this.#service;
  }

  /** Ends it, if it was loaded. Idempotent. */
  async stop(): Promise<void> {
    await (await this.#service)?.stop();
  }
}
