import type { LauncherStarter } from './launcher.ts';
import { loadLibc } from './native.ts';

let loaded: Promise<LauncherStarter> | null = null;

/**
 * Loads how the launcher is started, with the first start. Two ways exist: posix_spawn(3) by the addon koffi, which does not
 * copy the page tables of the daemon; and execa, which works wherever Node does, for installations without the addon.
 */
export function loadLauncherStarter(): Promise<LauncherStarter> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<LauncherStarter> {
  if ((await loadLibc()) !== null) return (await import('./native-launcher.ts')).openNativeLauncher();
  return (await import('./portable-launcher.ts')).openPortableLauncher();
}
