import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runSync } from './run-sync.ts';
import { scratchFolder } from './scratch.ts';

/** A new key and the certificate that vouches for itself, for names like `DNS:localhost,IP:127.0.0.1`. */
export function selfSigned(names: string): { key: string; cert: string } {
  const folder = scratchFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`];
  runSync('openssl', 'req', ...kind, ...subject, '-keyout', key, '-out', cert);
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}
