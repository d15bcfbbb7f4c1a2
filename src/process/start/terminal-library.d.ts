/** The native part of the terminal library, which it uses itself through this module. */
declare module '@lydell/node-pty/requireBinary.js' {
  export interface Terminals {
    /** Makes a pair: numbers of both ends, neither of them closed on exec, and the path of the slave. */
    open(cols: number, rows: number): { master: number; slave: number; pty: string };
    resize(master: number, cols: number, rows: number): void;
  }

  export function requireBinary(file: 'pty.node'): Terminals;
}
