/** Limits of what a claim says. Its schema, the manager and forms check by the same ones. Contract section 7, "Sandboxes". */

/** A duration, in s: a hundred years. */
export const DURATION_MAX_S = 100 * 366 * 24 * 60 * 60;

/** A size of memory or disk, in MiB: one hour of 2 PiB in MiB × ms is still an exact integer in JSON. */
export const SIZE_MAX_MIB = 2 ** 31;

/** Characters of a URL, secret or path of a webhook. */
export const WEBHOOK_TEXT_MAX = 4096;

/** Globs of `watch_ignore`, and characters of one. */
export const GLOBS_MAX = 100;
export const GLOB_MAX_LENGTH = 256;
/** What a glob must be; one that names nothing below `watch_dir`, such as `/`, is none. */
export const GLOB_PATTERN = '^(?!(\\.?/)*$)[^\\u0000]+$';

/** Pairs of metadata, the form of a key, and characters of a text. */
export const METADATA_MAX = 32;
export const METADATA_KEY_PATTERN = '^[A-Za-z0-9_./-]{1,63}$';
export const METADATA_KEY_SHAPE = '1 to 63 of A-Z a-z 0-9 _ - . /';
export const METADATA_TEXT_MAX = 256;

/** Bytes of all names and values of environment variables, each pair with its `=` and NUL. */
export const VARIABLES_MAX_BYTES = 64 * 1024;

/** The entries of a page of sandboxes: where the request asks for no number, and at most. */
export const SANDBOX_PAGE_STANDARD = 50;
export const SANDBOX_PAGE_MAX = 200;

const MIB_OF: Record<string, number> = { Mi: 1, Gi: 1024, Ti: 1024 * 1024 };
const MEMORY = /^([1-9]\d{0,8})(Mi|Gi|Ti)$/;
const CORES = /^(0|[1-9]\d{0,3})(\.\d{1,3})?$/;

/** MiB of a size like `128Mi` or `1Gi`; null for anything else. Source: contract section 7, `resources`. */
export function mebibytes(text: string): number | null {
  const [, count, unit = ''] = MEMORY.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (MIB_OF[unit] as number);
}

/** A size in MiB as the text of `mebibytes`, in the largest unit that divides it. */
export function sizeText(size_mib: number): string {
  const fits = (each: string) => size_mib > 0 && size_mib % (MIB_OF[each] as number) === 0;
  const unit = ['Ti', 'Gi'].find(fits) ?? 'Mi';
  return `${size_mib / (MIB_OF[unit] as number)}${unit}`;
}

/** Thousandths of a core, from cores like `0.5` or `2`; null for anything else, including 0. */
export function millicores(cores: string | number): number | null {
  const text = String(cores);
  const millis = CORES.test(text) ? Math.round(Number(text) * 1000) : 0;
  return millis > 0 ? millis : null;
}
