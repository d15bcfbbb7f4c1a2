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
