import type { HttpApp } from '../../../base/http/app.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { SandboxState } from '../../../contract/sandboxes.ts';
import { registerFileRoutes } from './file-routes.ts';
import type { FileService } from './file-service.ts';

/** The slice of the daemon that the file routes use. */
export interface FileContext {
  readonly state: SandboxState | 'starting';
  /** Loaded with the first request for files. */
  files(): Promise<Pick<FileService, 'answer'>>;
}

/**
 * Adds the routes of file operations, which are answered in a process of the account that the request acts as. Those that
 * change files throw `conflict` while the sandbox is paused. Source: contract section 4, "Files".
 */
export function registerForwardedFileRoutes(app: HttpApp, daemon: FileContext): Promise<void> {
  return registerFileRoutes(app, async (route, exchange) => {
    if (route.changes_files) checkWritable(daemon);
    const files = await daemon.files();
    await files.answer(route, exchange);
  });
}

function checkWritable({ state }: FileContext): void {
  if (state === 'paused') throw new ApiError('conflict', 'The sandbox is paused.');
  if (state === 'stopping') throw new ApiError('shutting_down');
}
