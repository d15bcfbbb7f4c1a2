import { Random } from '../random.ts';

/** What would act if it were anything but text. */
const ACTS = [
  '<script>globalThis.hacked = 1</script>',
  '<img src=x onerror="globalThis.hacked = 1">',
  '<svg/onload=globalThis.hacked=1>',
  '"><iframe srcdoc="<script>parent.hacked=1</script>">',
  "'-globalThis.hacked-'",
  'javascript:globalThis.hacked=1',
  '{{constructor.constructor("globalThis.hacked=1")()}}',
  '</textarea><script>globalThis.hacked=1</script>',
  '<a href="javascript:globalThis.hacked=1">x</a>',
  '&lt;script&gt;globalThis.hacked=1&lt;/script&gt;',
  '<style>*{display:none}</style>',
  '<link rel=stylesheet href=//evil.example/x.css>',
  '<meta http-equiv=refresh content="0;url=//evil.example">',
  '<form action=//evil.example><button autofocus>',
  '\u001b]0;hacked title\u0007',
  '\u001b]8;;javascript:globalThis.hacked=1\u0007click\u001b]8;;\u0007',
  '\u001b]52;c;aGFja2Vk\u0007',
  '\u001b[2J\u001b[H\u001b[8m',
  '\u202egnp.exe\u202c',
  '\u200b\u200f\ufeff',
  '__proto__',
  'constructor',
  '=cmd|calc!A0',
  '%00%2e%2e%2f',
  '\\u003cscript\\u003e',
];

/** Texts that hold some of them, each first alone, then put together by chance; the same for the same seed. */
export function hostileStrings(seed: number, count: number): string[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, index) => {
    const more = random.chance(0.5) ? random.pick(ACTS) : '';
    return ACTS[index] ?? `${random.pick(ACTS)}${more}${index}`;
  });
}
