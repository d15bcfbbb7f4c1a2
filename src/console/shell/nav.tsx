import { linkTo, useRoute } from '../base/router.ts';
import { program, signOut } from '../base/session.ts';
import { useStore } from '../base/store.ts';
import { choose, theme } from '../base/theme.ts';
import { Icon } from '../parts/icon.tsx';
import { help } from './help.tsx';
import { palette } from './palette.tsx';
import { placesOf } from './places.ts';

const NEXT = { system: 'light', light: 'dark', dark: 'system' } as const;
const THEME_ICONS = { system: 'system', light: 'sun', dark: 'moon' } as const;

/** The navigation, at the side or, on a phone, at the foot. */
export function Nav({ onSkip }: { onSkip(): void }) {
  const { segments } = useRoute();
  const of = useStore(program) ?? 'manager';
  const [first = ''] = segments;
  return (
    <nav class="nav" aria-label="Console">
      <button type="button" class="skip" onClick={onSkip}>
        To the content
      </button>
      <a class="brand" href="#/">
        <img src="./icon.svg" alt="" />
        sandboxd
      </a>
      <ul>
        {placesOf(of).map((place) => (
          <li key={place.text}>
            <a
              href={linkTo(place.segments)}
              aria-current={(place.segments[0] ?? '') === first ? 'page' : undefined}
              title={`${place.text} (g ${place.key})`}
            >
              <Icon name={place.icon} />
              {place.text}
            </a>
          </li>
        ))}
      </ul>
      <Tools />
    </nav>
  );
}

/** What is not a view: at the foot of the navigation or, on a phone, of the page. */
export function Tools() {
  const of = useStore(program) ?? 'manager';
  const chosen = useStore(theme);
  return (
    <div class="tools">
      <button type="button" class="button is-plain" onClick={() => palette.set(true)}>
        <Icon name="search" />
        Go to
        <kbd>Ctrl K</kbd>
      </button>
      <button type="button" class="button is-plain" onClick={() => help.set(true)}>
        <Icon name="help" />
        Keys
        <kbd>?</kbd>
      </button>
      <button type="button" class="button is-plain" onClick={() => choose(NEXT[chosen])}>
        <Icon name={THEME_ICONS[chosen]} />
        Theme: {chosen}
      </button>
      {of === 'manager' && (
        <button type="button" class="button is-plain" onClick={signOut}>
          <Icon name="leave" />
          Sign out
        </button>
      )}
    </div>
  );
}
