import { connection } from '../api/connection.ts';
import { program } from '../base/session.ts';
import { useStore } from '../base/store.ts';

/** Says that nobody answers, as long as that is so. */
export function Banner() {
  const is_away = useStore(connection) === 'away';
  const of = useStore(program) ?? 'manager';
  return (
    <div role="status">
      {is_away && (
        <div class="banner">
          The {of} cannot be reached. Trying again; what is shown may be old, and what you have typed stays.
        </div>
      )}
    </div>
  );
}
