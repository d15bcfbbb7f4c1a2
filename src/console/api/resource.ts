import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { after } from '../base/clock.ts';
import { connection } from './connection.ts';
import { type Problem, problemOf } from './problem.ts';

/** Something that is loaded, and loaded again. */
export interface Resource<Data> {
  /** What was loaded last; kept while it is loaded again and when that fails. */
  data: Data | null;
  problem: Problem | null;
  is_loading: boolean;
  reload(): void;
}

interface State<Data> {
  key: string | null;
  data: Data | null;
  problem: Problem | null;
  is_loading: boolean;
}

/**
 * Loads what `key` stands for, again when the key changes, when the server is back, and every `refresh_ms` while the page
 * is seen. Null loads nothing. Answers that come too late are dropped.
 */
export function useResource<Data>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<Data>,
  refresh_ms = 0,
): Resource<Data> {
  const [state, setState] = useState<State<Data>>({
    key,
    data: null,
    problem: null,
    is_loading: key !== null,
  });
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  const reload = useCallback(() => setTurn((count) => count + 1), []);

  useEffect(() => {
    if (key === null) return setState({ key, data: null, problem: null, is_loading: false });
    const ending = new AbortController();
    let cancel = () => {};
    const data = (before: State<Data>) => (before.key === key ? before.data : null);
    setState((before) => ({ ...before, key, data: data(before), is_loading: true }));
    const settle = (change: (before: State<Data>) => State<Data>) => {
      if (ending.signal.aborted) return;
      setState(change);
      if (refresh_ms > 0) cancel = after(refresh_ms, () => !document.hidden && reload());
    };
    loader.current(ending.signal).then(
      (loaded) => settle(() => ({ key, data: loaded, problem: null, is_loading: false })),
      (error: unknown) =>
        settle((before) => ({ key, data: data(before), problem: problemOf(error), is_loading: false })),
    );
    return () => {
      ending.abort();
      cancel();
    };
  }, [key, turn, refresh_ms]);

  useEffect(() => {
    const onSeen = () => !document.hidden && refresh_ms > 0 && reload();
    document.addEventListener('visibilitychange', onSeen);
    const forget = connection.onChange(() => connection.value === 'there' && reload());
    return () => {
      document.removeEventListener('visibilitychange', onSeen);
      forget();
    };
  }, [refresh_ms, reload]);

  const is_stale = state.key !== key;
  return {
    data: is_stale ? null : state.data,
    problem: is_stale ? null : state.problem,
    is_loading: is_stale ? key !== null : state.is_loading,
    reload,
  };
}
