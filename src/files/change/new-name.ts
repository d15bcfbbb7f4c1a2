import { invalidField } from '../../contract/errors.ts';
import { isTemporaryName, TEMPORARY_PATTERN } from '../../contract/temporary-file.ts';
import type { Place } from '../place.ts';

/**
 * Throws `invalid_request` for a place that is, or lies in, what bears the name of an upload under way: lists and watches
 * leave such names out, so that nothing else may hide behind one.
 */
export function checkNewName({ directory, missing, name }: Place, field = 'path'): void {
  const names = [...directory.real.split('/'), ...missing, name];
  if (names.some(isTemporaryName)) throw invalidField(field, IS_TEMPORARY);
}

/** What is wrong with such a name. */
export const IS_TEMPORARY = `must not contain a name like ${TEMPORARY_PATTERN}, which uploads under way have`;
