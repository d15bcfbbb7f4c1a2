/**
 * Integers from 0 to 2⁵³ − 1, multiplied and divided without rounding, so that no token is gained or lost. A script in
 * Redis, which only has doubles, computes the same results with the same steps.
 */

/** The exact quotient of a division. */
export interface Share {
  whole: number;
  /** The remainder, from 0 to the divisor − 1. */
  rest: number;
}

/** `a × b ÷ divisor`; `a` must not exceed `divisor`. */
export function share(a: number, b: number, divisor: number): Share {
  const product = a * b;
  return product <= Number.MAX_SAFE_INTEGER ? divided(product, divisor) : longShare(a, b, divisor);
}

/** `a ÷ divisor`. */
export function divided(a: number, divisor: number): Share {
  const rest = a % divisor;
  return { whole: (a - rest) / divisor, rest };
}

/** For a product that is too large for a double: doubles and adds, one binary digit of `a` at a time. */
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

/** The sum of two shares of one divisor. Compares before it adds, because the sum of the rests may not be exact. */
export function added(a: Share, b: Share, divisor: number): Share {
  const whole = a.whole + b.whole;
  return a.rest >= divisor - b.rest
    ? { whole: whole + 1, rest: a.rest - (divisor - b.rest) }
    : { whole, rest: a.rest + b.rest };
}
