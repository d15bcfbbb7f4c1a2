import { cpSync, rmSync, writeFileSync } from 'node:fs';

/** The types of what CommonJS can `require`: the same files, in a folder that says so. */
cpSync('dist/types', 'dist/types-cjs', { recursive: true });
rmSync('dist/types-cjs/client', { recursive: true });
writeFileSync('dist/types-cjs/package.json', '{"type":"commonjs"}\n');
