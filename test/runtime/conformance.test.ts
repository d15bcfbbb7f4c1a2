import { describeRuntime } from '../support/runtime/conformance.ts';
import { Sandboxes } from '../support/runtime/sandboxes.ts';

describeRuntime('local', async () => {
  const { runtime } = await Sandboxes.open();
  return { runtime, work_dir: '/work', host: '127.0.0.1' };
});
