import { kernelRandom } from '../../base/entropy.ts';
import { temporaryName } from '../../contract/temporary-file.ts';

/** An unused name for what is made beside its place, with the id in it. */
export function newTemporary(): { id: string; name: string } {
  const id = kernelRandom(12).toString('hex');
  return { id, name: temporaryName(id) };
}
