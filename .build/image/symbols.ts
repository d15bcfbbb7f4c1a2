import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

/** Byte offsets in the header of a 64-bit ELF file. */
const PROGRAM_HEADERS_AT = 32;
const SECTION_HEADERS_AT = 40;
const PROGRAM_HEADER_SIZE = 54;
const PROGRAM_HEADER_COUNT = 56;
const SECTION_HEADER_COUNT = 60;
const SECTION_NAMES = 62;
/** The first page contains all headers before the sections. */
const HEADERS_BYTES = 4096;
/** Byte offsets in a program header. */
const SEGMENT_AT = 8;
const SEGMENT_SIZE = 32;

/**
 * Removes symbols and debugging sections from an executable, in place. They lie behind everything that is loaded, so the
 * result starts as fast and uses as much memory as before, and less disk. It is the same on every machine, whatever tools
 * are installed. Throws if the file is not a 64-bit ELF file.
 */
export function removeSymbols(path: string): void {
  const file = openSync(path, 'r+');
  const elf = Buffer.alloc(HEADERS_BYTES);
  readSync(file, elf, 0, elf.length, 0);
  if (elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2) throw new Error(`${path} is not a 64-bit ELF file`);
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
