import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

/** Where a 64-bit ELF header keeps what is read here, in bytes from its start. */
const PROGRAM_HEADERS_AT = 32;
const SECTION_HEADERS_AT = 40;
const PROGRAM_HEADER_SIZE = 54;
const PROGRAM_HEADER_COUNT = 56;
const SECTION_HEADER_COUNT = 60;
const SECTION_NAMES = 62;
/** All headers before the sections are in the first page. */
const HEADERS_BYTES = 4096;
/** And a program header. */
const SEGMENT_AT = 8;
const SEGMENT_SIZE = 32;

/**
 * Takes the symbols and debugging sections out of an executable, which lie behind everything that is loaded: the same
 * bytes on every machine, whatever tools it has. It starts as fast and takes as much memory as before, and less disk.
 */
export function removeSymbols(path: string): void {
  const file = openSync(path, 'r+');
  const elf = Buffer.alloc(HEADERS_BYTES);
  readSync(file, elf, 0, elf.length, 0);
  if (elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2) throw new Error(`${path} is no 64-bit ELF file`);
  const headers_at = Number(elf.readBigUInt64LE(PROGRAM_HEADERS_AT));
  const header_size = elf.readUInt16LE(PROGRAM_HEADER_SIZE);
  const count = elf.readUInt16LE(PROGRAM_HEADER_COUNT);
  let end = 0;
  for (let i = 0; i < count; i++) {
    const at = headers_at + i * header_size;
    end = Math.max(
      end,
      Number(elf.readBigUInt64LE(at + SEGMENT_AT) + elf.readBigUInt64LE(at + SEGMENT_SIZE)),
    );
  }
  elf.writeBigUInt64LE(0n, SECTION_HEADERS_AT);
  elf.writeUInt16LE(0, SECTION_HEADER_COUNT);
  elf.writeUInt16LE(0, SECTION_NAMES);
  writeSync(file, elf, 0, elf.length, 0);
  ftruncateSync(file, end);
  closeSync(file);
}
