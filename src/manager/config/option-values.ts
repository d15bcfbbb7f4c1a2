import { resolve } from 'node:path';
import type { OptionType } from '../../base/options.ts';
import { TRANSFER_RATE_MIN_BYTES } from '../../contract/defaults.ts';
import { mebibytes, millicores } from '../../contract/limits.ts';
import { parseCidr } from '../../webhook/address.ts';

const MIB_BYTES = 1024 * 1024;

/** `sqlite:<absolute path>` or a PostgreSQL URL. */
export const DATABASE_URL: OptionType<string> = {
  accepted: 'must be sqlite:<path> or postgres://…',
  parse(text) {
    const file = /^sqlite:(.+)$/.exec(text)?.[1];
    if (file !== undefined) return `sqlite:${resolve(file)}`;
    return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : null;
  },
};

/** A `redis://` or `rediss://` URL. */
export const REDIS_URL: OptionType<string> = {
  accepted: 'must be a redis:// or rediss:// URL',
  parse: (text) => (/^rediss?:\/\//.test(text) && URL.canParse(text) ? text : null),
};

/** The host and port of `<host>:<port>`, an IPv6 host in brackets. */
export const LISTEN_ADDRESS: OptionType<[host: string, port: number]> = {
  accepted: 'must be <host>:<port>',
  parse(text) {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    const port = Number(digits);
    return host === undefined || port > 65_535 ? null : [host, port];
  },
};

/** A path, made absolute. */
export const FILE_PATH: OptionType<string> = {
  accepted: 'must not be empty',
  parse: (text) => (text === '' ? null : resolve(text)),
};

/** A name that is also a label of metrics. */
export const LABEL: OptionType<string> = {
  accepted: 'must be 1 to 64 of A-Z a-z 0-9 _ - .',
  parse: (text) => (/^[A-Za-z0-9_.-]{1,64}$/.test(text) ? text : null),
};

/** The name of a namespace in a cluster. */
export const NAMESPACE: OptionType<string> = {
  accepted: 'must be 1 to 63 of a-z 0-9 -, beginning and ending with one of a-z 0-9',
  parse: (text) => (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text) ? text : null),
};

/** Ranges of addresses. */
export const CIDRS = { accepted: 'must be address ranges like 10.0.0.0/8', parse: parseCidr };

/** A size in MiB. */
export const SIZE = { accepted: 'must be a size like 512Mi or 8Gi', parse: mebibytes };

/** Bytes per second: a whole number of them, or a size; at least `TRANSFER_RATE_MIN_BYTES`. */
export const TRANSFER_RATE: OptionType<number> = {
  accepted: 'must be at least 1Mi, as bytes per second like 12500000 or a size like 10Mi',
  parse(text) {
    const bytes = /^\d{1,16}$/.test(text) ? Number(text) : (mebibytes(text) ?? 0) * MIB_BYTES;
    return Number.isSafeInteger(bytes) && bytes >= TRANSFER_RATE_MIN_BYTES ? bytes : null;
  },
};

/** A number of cores, in thousandths. */
export const CORES = { accepted: 'must be a number of cores, like 3.5', parse: millicores };
