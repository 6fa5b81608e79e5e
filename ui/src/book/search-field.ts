/** An attribute as a field of the search. */
export function fieldOf(name: string): string {
  return `${/^[\p{L}\p{N}_]+$/u.test(name) ? name : `"${name.replaceAll('"', " ")}"`}:`;
}
