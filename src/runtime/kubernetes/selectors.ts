import type { LabelSelector } from './api/objects.ts';

/** Whether a selector chooses what has these labels; an empty one chooses all. Source: Kubernetes, `LabelSelector`. */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Record<string, string>,
) {
  const is_equal = Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
  return is_equal && matchExpressions.every((expression) => holds(expression, labels));
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

function holds({ key, operator, values = [] }: Expression, labels: Record<string, string>): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
