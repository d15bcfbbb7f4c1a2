import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SettingStore } from '../../../src/manager/database/setting-store.ts';
import { RecordedStore } from '../../../src/manager/orphans/recorded-store.ts';
import { checkPlace } from '../../../src/manager/ownership/place-check.ts';
import { DataDir } from '../../../src/runtime/local/data-dir.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { opened, SILENT } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

/** Sandboxes that are folders of a data directory, of which nothing runs. */
class FolderRuntime extends NoRuntime {
  override readonly place: DataDir;
  readonly #ids: string[];
  has_taken_over = false;

  constructor(data_dir: string, ids: string[] = []) {
    super();
    mkdirSync(data_dir, { recursive: true });
    this.place = new DataDir(data_dir);
    this.#ids = ids;
  }

  override async list(): Promise<string[]> {
    return this.#ids;
  }

  override async takeOver(): Promise<void> {
    this.has_taken_over = true;
  }
}

const refused = (problem: string) => ({ exit_code: 2, message: expect.stringContaining(problem) });

describeOnStores('a data directory', (fresh) => {
  async function scene() {
    const [url, folder] = [await fresh(), scratchFolder()];
    const [mine, other] = [join(folder, 'mine'), join(folder, 'other')];
    const start = async (data_dir: string, ids: string[] = [], adopt_data_dir = 'false') => {
      const runtime = new FolderRuntime(data_dir, ids);
      const starting = startManager(url, { runtime, folder, options: { adopt_data_dir } });
      await starting.then(
        ({ stop }) => stop(),
        (error) => {
          expect(runtime.has_taken_over).toBe(false);
          throw error;
        },
      );
      expect(runtime.has_taken_over).toBe(true);
    };
    return { url, mine, other, start };
  }

  it('belongs to one database; another one is refused by name unless it is meant', async () => {
    const { mine, other, start } = await scene();
    await start(mine);
    const id = join(mine, '.data-dir-id');
    expect([statSync(id).mode & 0o777, readFileSync(id, 'utf8').length]).toEqual([0o600, 33]);
    await start(mine);
    await expect(start(other)).rejects.toMatchObject(
      refused(`--data-dir ${other} is not the data directory`),
    );
    expect(existsSync(join(other, '.data-dir-id'))).toBe(false);
    rmSync(id);
    await expect(start(mine)).rejects.toMatchObject(refused('--adopt-data-dir'));
    await start(other, ['sbx_1'], 'true');
    await start(other, ['sbx_1']);
    await expect(start(mine)).rejects.toMatchObject(refused('is not the data directory'));
    writeFileSync(join(other, '.data-dir-id'), 'junk');
    await expect(start(other)).rejects.toMatchObject(refused('holds no id'));
  });

  it('that is full is refused beside a database that knows none of its sandboxes', async () => {
    const { mine, start } = await scene();
    await expect(start(mine, ['sbx_1', 'sbx_2'])).rejects.toMatchObject(
      refused(`${mine} holds 2 sandboxes and --database knows none of them`),
    );
  });

  it('is the same to two replicas that start on it at once for the first time', async () => {
    const { url, mine } = await scene();
    const runtime = new FolderRuntime(mine);
    /** While a replica waits for the database, the other one does all that it does at its first start. */
    class SlowSettings extends SettingStore {
      override async find(key: string): Promise<string | null> {
        await this.keep(key, runtime.place.mark());
        return super.find(key);
      }
    }
    const { db } = await opened(url);
    const recorded = async () => new Set<string>();
    const parts = { runtime, recorded, is_meant: false, log: SILENT };
    await checkPlace({ ...parts, settings: new SlowSettings(db) });
    await checkPlace({ ...parts, settings: new SettingStore(db) });
  });

  it('from before there were ids is taken as it is', async () => {
    const { url, mine, start } = await scene();
    const { db } = await opened(url);
    await db.insertInto('sandboxes').values(rowOf('sbx_1')).execute();
    await start(mine, ['sbx_1', 'sbx_2']);
    await start(mine, ['sbx_2']);
  });
});

describeOnStores('the store of what is recorded', (fresh) => {
  it('finds which ids have a row that is not deleted, however many are asked for', async () => {
    const { db } = await opened(await fresh());
    await db
      .insertInto('sandboxes')
      .values([rowOf('sbx_1'), rowOf('sbx_2'), { ...rowOf('sbx_3'), deleted_at_ms: 1 }])
      .execute();
    const ids = ['sbx_1', 'sbx_3', ...Array.from({ length: 1_200 }, (_, i) => `none_${i}`), 'sbx_2'];
    expect([...(await new RecordedStore(db).recorded(ids))]).toEqual(['sbx_1', 'sbx_2']);
    expect((await new RecordedStore(db).recorded([])).size).toBe(0);
  });
});
