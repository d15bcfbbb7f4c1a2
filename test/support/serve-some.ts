import type { HttpApp } from '../../src/base/http/app.ts';
import { type Handlers, serve } from '../../src/base/http/serve.ts';
import type { Routes } from '../../src/contract/routes/route.ts';

/** Serves those rows of a table that handlers are given for, without any guard. */
export async function serveSome<Rows extends Routes>(
  app: HttpApp,
  table: Rows,
  handlers: Partial<Handlers<Rows>>,
): Promise<void> {
  const rows = Object.fromEntries(Object.entries(table).filter(([id]) => Object.hasOwn(handlers, id)));
  await serve<Routes>(app, rows, handlers as Handlers<Routes>, () => ({}));
}
