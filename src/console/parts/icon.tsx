const PATHS = {
  overview: 'M2.5 9.5h4v4h-4zM9.5 2.5h4v11h-4zM2.5 2.5h4v4h-4z',
  sandboxes: 'M8 1.8l5.6 3.1v6.2L8 14.2l-5.6-3.1V4.9zM2.6 5L8 8l5.4-3M8 8v6',
  deliveries: 'M14 2L7 9M14 2L9.5 14 7 9 2 6.5z',
  events: 'M1.5 8h3l2-5 3 10 2-5h3',
  quotas: 'M2.2 12a6.5 6.5 0 1111.6 0M8 9.5l3-3.5',
  usage: 'M2 13.5h12M4 11V8M8 11V3.5M12 11V6',
  processes: 'M2 3.5h12v9H2zM4.5 6.5l2 1.6-2 1.6M8 10h3',
  terminal: 'M3 4.5L6.5 8 3 11.5M8 12h5',
  files: 'M2 3.5h4l1.5 2H14v7H2z',
  file: 'M4 1.8h5l3 3v9.4H4zM9 1.8v3h3',
  link: 'M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 014.5 4.5L11.5 9M9 11.5L7.5 13A3 3 0 013 8.5L4.5 7',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  sun: 'M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  moon: 'M13.5 9.5A6 6 0 016.5 2.5a6 6 0 107 7z',
  system: 'M2 3h12v8H2zM5.5 13.5h5M8 11v2.5',
  leave: 'M6.5 2.5h-4v11h4M10.5 5l3 3-3 3M13 8H6',
  help: 'M6 6a2 2 0 113 1.8c-.7.4-1 .8-1 1.5M8 11.6v.1M8 1.7a6.3 6.3 0 100 12.6A6.3 6.3 0 008 1.7z',
  search: 'M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.5 10.5l3 3',
  down: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M2.5 13.5h11',
  up: 'M8 11V3M4.5 6L8 2.5 11.5 6M2.5 13.5h11',
  plus: 'M8 3v10M3 8h10',
  refresh: 'M13.5 8a5.5 5.5 0 11-1.7-4M13.5 2v3h-3',
} as const;

/** The name of an icon. */
export type IconName = keyof typeof PATHS;

/** A small picture beside a word; it says nothing that the word does not. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
