/**
 * Whole numbers from 0 to 2⁵³ − 1, multiplied and divided without ever rounding: a token is never won or lost, and a
 * script in Redis, which knows doubles alone, comes to the same figures with the same steps.
 */

export interface Share {
  whole: number;
  /** In parts of the divisor. */
  rest: number;
}

/** `a × b ÷ divisor`, for `a` up to `divisor`. */
export function share(a: number, b: number, divisor: number): Share {
  const product = a * b;
  return product <= Number.MAX_SAFE_INTEGER ? divided(product, divisor) : longShare(a, b, divisor);
}

export function divided(a: number, divisor: number): Share {
  const rest = a % divisor;
  return { whole: (a - rest) / divisor, rest };
}

/** Where the product is too long for a double: doubling and adding, one binary digit of `a` at a time. */
function longShare(a: number, b: number, divisor: number): Share {
  const once = divided(b, divisor);
  let left = a;
  let sum: Share = { whole: 0, rest: 0 };
  for (let digit = 2 ** 52; digit >= 1; digit /= 2) {
    sum = added(sum, sum, divisor);
    if (left < digit) continue;
    left -= digit;
    sum = added(sum, once, divisor);
  }
  return sum;
}

/** The sum of two shares of one divisor; the rests are compared first, because their sum may be too long. */
export function added(a: Share, b: Share, divisor: number): Share {
  const whole = a.whole + b.whole;
  return a.rest >= divisor - b.rest
    ? { whole: whole + 1, rest: a.rest - (divisor - b.rest) }
    : { whole, rest: a.rest + b.rest };
}
